export function classifyView() {}
export function continueView() {}
