import { isLoopback } from '../../adapters/http/bind.js'
import { machineAddresses } from '../../adapters/mesh/network/reachability.js'

/** Addresses of this machine that are announced, at most. */
const MAX_HOSTS = 4

/** Hosts under which other machines reach a bound address; none for one of this machine alone. */
export function hostsAt(address: string): readonly string[] {
  if (isLoopback(address)) return []
  return address === '0.0.0.0' || address === '::' ? machineAddresses().slice(0, MAX_HOSTS) : [address]
}
