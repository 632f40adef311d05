import c from 'compact-encoding'
import { concatBytes } from '../../../kit/bytes.js'
import { utf8 } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { SHORT_ROOT_BYTES } from '../mesh-root.js'
import type { Trust } from '../types.js'
import type { CodePlace, ShortCode } from './invite-code.js'

/** Bytes of the secret: 112 random bits, which nobody guesses. So no exchange of keys (PAKE) is needed. */
export const SHORT_SECRET_BYTES = 14

/** Versions of short codes, by network and trust. A long code has 2 or 3. */
const VERSIONS: Readonly<Record<CodePlace['network'], Readonly<Record<Trust, number>>>> = {
  public: { guest: 4, mine: 5 },
  private: { guest: 6, mine: 7 },
  local: { guest: 8, mine: 9 }
}
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!:)|:)){4}([1-9]\d{0,4})$/
const SEED_DOMAIN = utf8('a2a-node/invite-seed/1')
const RENDEZVOUS_DOMAIN = utf8('a2a-node/rendezvous/1')

/**
 * Has a short code room for these bootstrap nodes? `public`: none are given; `private`: one, by IPv4 address and port;
 * `local`: only the port.
 */
export function fitsShortCode({ network, bootstrap, localPort }: CodePlace): boolean {
  if (network === 'local') return bootstrap.length === 0 && localPort !== null
  if (localPort !== null) return false
  return network === 'private' ? bootstrap.length === 1 && isIpv4(bootstrap[0] ?? '') : bootstrap.length === 0
}

/** The body of a code that {@link fitsShortCode}: version, place, secret, fingerprint. */
export function encodeShortBody({ trust, secret, root, ...place }: ShortCode): Uint8Array {
  return concatBytes([Uint8Array.of(VERSIONS[place.network][trust]), encodePlace(place), secret, root])
}

/** The short code of a body; null for bytes of another kind, length or version. Total. */
export function decodeShortBody(body: Uint8Array): ShortCode | null {
  for (const network of ['public', 'private', 'local'] as const)
    for (const trust of ['guest', 'mine'] as const)
      if (VERSIONS[network][trust] === body[0]) return decodeRest(body, { network, trust })
  return null
}

/** Is it the first byte of a short code? */
export function isShortVersion(version: number | undefined): boolean {
  return Object.values(VERSIONS).some(({ guest, mine }) => version === guest || version === mine)
}

/** The seed (32 bytes) of the key pair of an invite. */
export function inviteSeed(secret: Uint8Array, hash: Hash): Uint8Array {
  return hash(concatBytes([SEED_DOMAIN, secret]))
}

/**
 * The key (32 bytes) whose discovery key is the topic at which admins answer a short code. Every member derives it from
 * the id of the invite (32 bytes) in the log; a newcomer derives that from its secret.
 */
export function rendezvousKey(inviteId: Uint8Array, hash: Hash): Uint8Array {
  return hash(concatBytes([RENDEZVOUS_DOMAIN, inviteId]))
}

function isIpv4(address: string): boolean {
  return Number(IPV4.exec(address)?.[1] ?? 0x10000) <= 0xffff
}

function encodePlace({ network, bootstrap: [address = ''], localPort }: CodePlace): Uint8Array {
  if (network === 'local') return c.encode(c.uint16, localPort ?? 0)
  if (network === 'public') return new Uint8Array(0)
  const [host = '', port = ''] = address.split(':')
  return c.encode(c.ipv4Address, { host, port: Number(port) })
}

function decodeRest(
  body: Uint8Array,
  { network, trust }: { readonly network: CodePlace['network']; readonly trust: Trust }
): ShortCode | null {
  const placeBytes = { public: 0, private: 6, local: 2 }[network]
  if (body.byteLength !== 1 + placeBytes + SHORT_SECRET_BYTES + SHORT_ROOT_BYTES) return null
  const state = c.state(1, 1 + placeBytes, body)
  const localPort = network === 'local' ? c.uint16.decode(state) : null
  const address = network === 'private' ? c.ipv4Address.decode(state) : null
  const bootstrap = address === null ? [] : [`${address.host}:${address.port}`]
  const secret = body.slice(1 + placeBytes, -SHORT_ROOT_BYTES)
  return { kind: 'short', network, bootstrap, localPort, secret, root: body.slice(-SHORT_ROOT_BYTES), trust }
}
