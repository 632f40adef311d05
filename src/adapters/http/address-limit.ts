import type { Clock } from '../../kit/clock.js'
import { type RateLimit, RateTable } from '../../kit/rate.js'
import { isLoopback } from './bind.js'
import { HttpError } from './http-error.js'

/** Addresses that are counted apart, for each of the two limits; further ones share one count. */
export const MAX_ADDRESSES = 4096

/** Rates of one client address. Requests with a valid token are counted by neither. */
export interface AddressRates {
  /** Requests without a valid token, also those of public things. */
  readonly anonymous: RateLimit
  /** Of them, those with a wrong token at a path that takes one. */
  readonly wrongToken: RateLimit
}

/** The limit that a refused request met. */
export type AddressRule = 'anonymous' | 'wrong-token'

/** The requests that a limit is about, for people. */
export const LIMITED_REQUESTS: Readonly<Record<AddressRule, string>> = {
  anonymous: 'requests without a valid token',
  'wrong-token': 'wrong tokens'
}

/** A request that its address had no right to any more. */
export interface LimitedAddress {
  readonly rule: AddressRule
  /** As it is counted: an IPv4 address, an IPv6 /64, or `loopback`. */
  readonly address: string
}

/**
 * Counts requests without a valid token, by the address of their connection; headers of proxies are not read. The table
 * is bounded, and an idle address is forgotten.
 */
export class AddressLimit {
  readonly #anonymous: RateTable
  readonly #wrongTokens: RateTable
  readonly #onRefused: (refused: LimitedAddress) => void

  constructor({ anonymous, wrongToken }: AddressRates, deps: AddressLimitDeps) {
    this.#anonymous = new RateTable(anonymous, deps.clock, MAX_ADDRESSES)
    this.#wrongTokens = new RateTable(wrongToken, deps.clock, MAX_ADDRESSES)
    this.#onRefused = deps.onRefused
  }

  /** Counts a request of an address of {@link countedAddress}; null when it may be answered. */
  refusal(address: string, hasWrongToken: boolean): HttpError | null {
    if (hasWrongToken && !this.#wrongTokens.take(address)) return this.#refuse('wrong-token', address)
    return this.#anonymous.take(address) ? null : this.#refuse('anonymous', address)
  }

  /** Addresses that are counted now. */
  get size(): number {
    return Math.max(this.#anonymous.size, this.#wrongTokens.size)
  }

  #refuse(rule: AddressRule, address: string): HttpError {
    this.#onRefused({ rule, address })
    const table = rule === 'anonymous' ? this.#anonymous : this.#wrongTokens
    const seconds = Math.max(1, Math.ceil(table.waitMs(address) / 1000))
    const message = `too many ${LIMITED_REQUESTS[rule]} from this address: try again in ${seconds} s`
    // The rest of the connection is not read.
    return new HttpError(429, {
      code: 'RATE_LIMITED',
      message,
      headers: { connection: 'close', 'retry-after': String(seconds) }
    })
  }
}

/** Dependencies of {@link AddressLimit}. */
export interface AddressLimitDeps {
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called with every refused request. */
  onRefused(refused: LimitedAddress): void
}

/**
 * The address as it is counted. An IPv6 client has a whole /64, from which it can send by any address; a local program
 * can use any address of the loopback.
 */
export function countedAddress(remoteAddress: string): string {
  const address = remoteAddress.toLowerCase().replace(/^::ffff:(?=\d+\.)/, '')
  if (isLoopback(address)) return 'loopback'
  if (!address.includes(':')) return address
  const [head = '', tail] = (address.split('%')[0] ?? '').split('::')
  return `${firstGroups(head, tail)}::/64`
}

/** The first four groups of an address in two sides, with the zeros that `::` stands for. */
function firstGroups(head: string, tail: string | undefined): string {
  const groups = (side: string): string[] => (side === '' ? [] : side.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  // Two groups may be written as an IPv4 address.
  const length = before.length + after.length + (after.at(-1)?.includes('.') === true ? 1 : 0)
  const zeros = tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - length) }, () => '0')
  return [...before, ...zeros, ...after].slice(0, 4).join(':')
}
