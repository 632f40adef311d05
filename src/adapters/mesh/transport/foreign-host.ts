import { type LookupAddress, type LookupAllOptions, type LookupOptions, lookup } from 'node:dns'
import net from 'node:net'

const OWN = new net.BlockList()
OWN.addSubnet('0.0.0.0', 8)
OWN.addSubnet('127.0.0.0', 8)
OWN.addSubnet('169.254.0.0', 16)
OWN.addAddress('::', 'ipv6')
OWN.addAddress('::1', 'ipv6')
OWN.addSubnet('fe80::', 10, 'ipv6')

/** Is it an address of this machine alone, or a link-local one, as metadata services of clouds have? */
function isOwnAddress(address: string): boolean {
  const kind = net.isIP(address)
  if (kind === 0) return false
  return OWN.check(address, kind === 4 ? 'ipv4' : 'ipv6')
}

/** Is it such an address, or a name that is one everywhere? */
export function isOwnHost(hostname: string): boolean {
  return isOwnAddress(hostname.replace(/^\[|\]$/g, '')) || /^(?:.*\.)?localhost\.?$/i.test(hostname)
}

type FoundAddresses = (error: Error | null, found: string | LookupAddress[], family?: number) => void

/** Resolves a name like `dns.lookup`, and refuses addresses of this machine alone. */
export function lookupElsewhere(hostname: string, options: LookupOptions, done: FoundAddresses): void {
  const all: LookupAllOptions = { ...options, all: true }
  lookup(hostname, all, (error, addresses) => {
    const found = error === null ? addresses.filter(({ address }) => !isOwnAddress(address)) : []
    const [first] = found
    if (first === undefined) return done(error ?? new Error(`${hostname} is a name of this machine alone`), '')
    if (options.all === true) done(null, found)
    else done(null, first.address, first.family)
  })
}
