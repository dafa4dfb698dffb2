export function runsView() {}
