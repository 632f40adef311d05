import c from 'compact-encoding'
import { concatBytes } from '../../../kit/bytes.js'
import { NodeError } from '../../../kit/errors.js'
import { bytesFromText, bytesToText, fromUtf8, utf8 } from '../../../kit/ids.js'
import type { Hash } from '../../../kit/sign.js'
import { ROOT_FINGERPRINT_BYTES, SHORT_ROOT_BYTES } from '../mesh-root.js'
import type { Trust } from '../types.js'
import { decodeShortBody, encodeShortBody, fitsShortCode, isShortVersion, SHORT_SECRET_BYTES } from './short-code.js'

/** Networks a mesh can live in, in the order of their numbers in a code. */
export const INVITE_NETWORKS = ['public', 'private', 'local'] as const

/** How a newcomer reaches the network of a mesh. */
export interface CodePlace {
  readonly network: (typeof INVITE_NETWORKS)[number]
  /** `host:port` of bootstrap nodes, at most 8 of at most 255 bytes. */
  readonly bootstrap: readonly string[]
  /** Port of the loopback bootstrap (network `local`), 1..65535. */
  readonly localPort: number | null
}

/** A code with the invite of blind-pairing, which names the topic of the mesh. */
export interface LongCode extends CodePlace {
  readonly kind: 'long'
  /** Fingerprint of the owner and the mesh, 16 bytes; see `rootFingerprint`. */
  readonly root: Uint8Array
  /** The invite of blind-pairing, 1..512 bytes. */
  readonly invite: Uint8Array
  /** How inviter and newcomer regard each other. */
  readonly trust: Trust
}

/** A code of at most 60 characters, from whose secret both sides derive the keys of the invite and its topic. */
export interface ShortCode extends CodePlace {
  readonly kind: 'short'
  /** The first 12 bytes of the fingerprint. */
  readonly root: Uint8Array
  /** 14 bytes. */
  readonly secret: Uint8Array
  readonly trust: Trust
}

/** Content of an invite code: the network of the mesh, its owner, and the invite. */
export type InviteCode = LongCode | ShortCode

/** Bootstrap nodes in one code. */
export const MAX_BOOTSTRAP = 8

/** Versions of long codes: each is of one {@link Trust}, since earlier builds know guests alone. */
const VERSIONS: Readonly<Record<Trust, number>> = { guest: 2, mine: 3 }
/** Codes of this version do not name the owner of the mesh. */
const WITHOUT_ROOT = 1
const MAX_INVITE_BYTES = 512
const MAX_ADDRESS_BYTES = 255
const CHECKSUM_BYTES = 4
/** Version, network, number of addresses, local port and length of the invite. */
const FIXED_BYTES = 7
const MAX_BYTES =
  FIXED_BYTES + MAX_BOOTSTRAP * (MAX_ADDRESS_BYTES + 1) + ROOT_FINGERPRINT_BYTES + MAX_INVITE_BYTES + CHECKSUM_BYTES
/** Characters of the longest code. */
const MAX_TEXT = Math.ceil((MAX_BYTES * 8) / 5)
const ADDRESS = /^(?:\[[0-9A-Fa-f:.]{2,64}\]|[A-Za-z0-9._-]{1,249}):([0-9]{1,5})$/

/**
 * An invite code for people to copy, in z32: a body, and the first 4 bytes of its hash.
 *
 * The body of a long code has version (1 byte: 2 for a guest, 3 for `mine`), network (1), and number of bootstrap nodes
 * (1), each as length (1) and UTF-8. Then come local port (2, little-endian, 0 for none), fingerprint of the root (16),
 * length of the invite (2) and the invite.
 *
 * The body of a short code has version (4 to 9, for network and trust) and place: the bootstrap node of a private
 * network (4 bytes of IPv4 address, port in 2, little-endian) or the local port (2). Then come the secret (14) and the
 * first 12 bytes of the fingerprint.
 * @throws NodeError CONFIG_INVALID when a part is out of bounds
 */
export function encodeInviteCode(code: InviteCode, hash: Hash): string {
  const fault = codeFault(code)
  if (fault !== null) throw new NodeError('CONFIG_INVALID', `no invite code can be made: ${fault}`)
  const body = code.kind === 'short' ? encodeShortBody(code) : encodeBody(code)
  return bytesToText(concatBytes([body, hash(body).subarray(0, CHECKSUM_BYTES)]))
}

/**
 * Decodes a code that a person typed or pasted, ignoring white space and case. A code of version 1 is refused: without
 * the owner of its mesh a newcomer could not tell an impostor from an admin. Never throws.
 */
export function decodeInviteCode(
  text: string,
  hash: Hash
): ({ readonly ok: true } & InviteCode) | { readonly ok: false; readonly reason: string } {
  const clean = text
    .slice(0, 2 * MAX_TEXT)
    .replace(/\s+/g, '')
    .toLowerCase()
  if (clean === '') return { ok: false, reason: 'it is empty' }
  const bytes = clean.length > MAX_TEXT ? null : bytesFromText(clean)
  if (bytes === null) return { ok: false, reason: 'it has characters that no code has' }
  if (bytes.byteLength <= CHECKSUM_BYTES || bytesToText(bytes) !== clean) return { ok: false, reason: 'it is cut off' }
  const body = bytes.subarray(0, -CHECKSUM_BYTES)
  const checksum = hash(body).subarray(0, CHECKSUM_BYTES)
  if (!checksum.every((byte, place) => byte === bytes[body.byteLength + place]))
    return { ok: false, reason: 'a character is wrong or missing' }
  const trust = (['guest', 'mine'] as const).find((one) => VERSIONS[one] === body[0])
  const isShort = isShortVersion(body[0])
  if (trust === undefined && !isShort) return { ok: false, reason: versionFault(body[0]) }
  try {
    const code = trust === undefined ? decodeShortBody(body) : decodeBody(body, trust)
    const fault = code === null ? 'it is malformed' : codeFault(code)
    return code === null || fault !== null ? { ok: false, reason: fault ?? 'it is malformed' } : { ok: true, ...code }
  } catch {
    return { ok: false, reason: 'it is malformed' }
  }
}

function versionFault(version: number | undefined): string {
  if (version !== WITHOUT_ROOT) return 'it is of a later version than this node reads'
  return 'an earlier version made it, without the key of the owner; an admin node of this version can make a fresh one'
}

function codeFault(code: InviteCode): string | null {
  const { network, bootstrap, localPort, root } = code
  if (!INVITE_NETWORKS.includes(network)) return 'the network is unknown'
  if (bootstrap.length > MAX_BOOTSTRAP) return `more than ${MAX_BOOTSTRAP} bootstrap nodes`
  if (!bootstrap.every(isAddress)) return 'a bootstrap node is not host:port'
  if (localPort !== null && !isPort(localPort)) return 'the local port is not 1..65535'
  const rootBytes = code.kind === 'short' ? SHORT_ROOT_BYTES : ROOT_FINGERPRINT_BYTES
  if (root.byteLength !== rootBytes) return `the fingerprint is not of ${rootBytes} bytes`
  return code.kind === 'short' ? shortFault(code) : longFault(code)
}

function shortFault({ secret, ...place }: ShortCode): string | null {
  if (!fitsShortCode(place)) return 'its bootstrap nodes do not fit a short code'
  return secret.byteLength === SHORT_SECRET_BYTES ? null : `the secret is not of ${SHORT_SECRET_BYTES} bytes`
}

function longFault({ invite }: LongCode): string | null {
  return invite.byteLength >= 1 && invite.byteLength <= MAX_INVITE_BYTES
    ? null
    : `the invite is not of 1..${MAX_INVITE_BYTES} bytes`
}

function isAddress(text: string): boolean {
  const match = ADDRESS.exec(text)
  return match !== null && text.length <= MAX_ADDRESS_BYTES && isPort(Number(match[1]))
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 1 && port <= 65_535
}

function encodeBody({ network, bootstrap, localPort, root, invite, trust }: LongCode): Uint8Array {
  const port = c.encode(c.uint16, localPort ?? 0)
  const addresses = bootstrap.map(utf8).map((bytes) => concatBytes([Uint8Array.of(bytes.byteLength), bytes]))
  const head = Uint8Array.of(VERSIONS[trust], INVITE_NETWORKS.indexOf(network), bootstrap.length)
  return concatBytes([head, ...addresses, port, root, c.encode(c.uint16, invite.byteLength), invite])
}

function decodeBody(body: Uint8Array, trust: Trust): LongCode | null {
  const state = c.state(1, body.byteLength, body)
  const network = INVITE_NETWORKS[c.uint8.decode(state)]
  const count = c.uint8.decode(state)
  if (network === undefined || count > MAX_BOOTSTRAP) return null
  const bootstrap: string[] = []
  for (let i = 0; i < count; i++) bootstrap.push(fromUtf8(take(state, c.uint8.decode(state))))
  const port = c.uint16.decode(state)
  const root = take(state, ROOT_FINGERPRINT_BYTES)
  const invite = take(state, c.uint16.decode(state))
  const localPort = port === 0 ? null : port
  return state.start === state.end ? { kind: 'long', network, bootstrap, localPort, root, invite, trust } : null
}

function take(state: { start: number; end: number; buffer: Uint8Array | null }, length: number): Uint8Array {
  // Past the end it comes out short, which the last check of the caller finds.
  state.start += length
  return state.buffer?.slice(state.start - length, state.start) ?? new Uint8Array(0)
}
