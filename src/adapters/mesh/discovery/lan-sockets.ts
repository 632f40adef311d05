import os from 'node:os'
import type { MulticastDns } from 'multicast-dns'

/** Interfaces that are used, at most. */
const MAX_INTERFACES = 4

/** Opens mDNS on each interface with an IPv4 address but loopback. @throws Error when there is none */
export async function openLanSockets(): Promise<readonly MulticastDns[]> {
  const { default: multicastDns } = await import('multicast-dns')
  const addresses = Object.values(os.networkInterfaces())
    .flatMap((all = []) => all.filter(({ internal, family }) => !internal && family === 'IPv4').slice(0, 1))
    .map(({ address }) => address)
  if (addresses.length === 0) throw new Error('this machine has no network address')
  // Bound to its own address, a socket gets no multicast.
  return addresses.slice(0, MAX_INTERFACES).map((one) => multicastDns({ interface: one, bind: '0.0.0.0' }))
}
