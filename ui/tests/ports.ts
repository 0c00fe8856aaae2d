// Ports of the servers that the tests of this process started: pages may ask these and no others.

export const ports = new Set<number>();
