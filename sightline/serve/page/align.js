export function alignView() {}
