export function tagsView() {}
