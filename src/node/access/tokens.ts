import type { Clock, Timer } from '../../kit/clock.js'
import { fromBase64, toBase64 } from '../../kit/bytes.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { Emitter, type Unsubscribe } from '../../kit/events.js'
import { type IdSource, utf8 } from '../../kit/ids.js'
import type { Hash } from '../../kit/sign.js'
import { NODE_NAME } from '../../kit/names/rule.js'
import { safeName } from '../../kit/names/safe-name.js'
import { type IdKind, resolveId } from '../../kit/resolve-id.js'
import { Bag } from '../../kit/transient.js'
import { sandboxIdSchema } from '../../domain/card/schema.js'
import { tierText, weakest } from '../../domain/routing/tier.js'
import type { Tier } from '../../domain/routing/tier.js'
import type { Audit } from '../../ports/audit.js'
import type { Membership } from '../../ports/mesh.js'
import type { Principal } from '../../ports/node-api.js'
import type { NodeStore } from '../../ports/storage.js'
import type { Telemetry } from '../../ports/telemetry.js'
import type { TokenGrant, TokenInfo, TokenRequest, TokenScope } from '../../ports/token-api.js'

/** The most tokens of a node; expired ones make room. */
export const TOKENS_MAX = 256
/** Interval between writes of a token's use, in milliseconds: a node that dies loses at most this much. */
const USED_MS = 600_000
/** Prefix of every token. */
const PREFIX = 'a2a_'
const ID_PREFIX = 'tok'
const TOKEN_IDS: IdKind<LiveToken> = {
  one: 'token',
  several: 'tokens',
  prefix: `${ID_PREFIX}_`,
  code: 'TOKEN_NOT_FOUND',
  list: 'a2a-node a2a token ls',
  label: (id, { stored }) => `${id} (${stored.name})`
}
/** Name of the stored tokens. */
const DOCUMENT = 'tokens'
const SCOPES: readonly TokenScope[] = ['read', 'send', 'admin']
/** Terms of a token without requested ones: no `admin`, L1 at most, 90 days in milliseconds. */
const DEFAULT_SCOPES: readonly TokenScope[] = ['read', 'send']
const DEFAULT_TIER: Tier = 1
const DEFAULT_TTL_MS = 7_776_000_000
const FORM = /^a2a_[A-Za-z0-9_-]{43}$/

/** Dependencies of {@link Tokens}. */
export interface TokenDeps {
  readonly clock: Clock
  readonly ids: IdSource
  readonly hash: Hash
  /** 32 unguessable bytes. */
  readonly secret: () => Uint8Array
  readonly store: Pick<NodeStore, 'read' | 'write'>
  readonly audit: Pick<Audit, 'append'>
  readonly telemetry: Pick<Telemetry, 'log'>
  readonly membership: Pick<Membership, 'certificate'>
}

/** The highest rights of a token or its caller. */
interface TokenPower {
  readonly tier: Tier
  readonly sandboxId: string | null
  readonly scopes: readonly TokenScope[]
}

/** A stored token. Times in unix milliseconds. */
interface StoredToken extends TokenPower {
  readonly id: string
  readonly name: string
  /** BLAKE2b-256 of the token, as base64. */
  readonly hash: string
  readonly createdAt: number
  readonly expiresAt: number | null
  readonly lastUsedAt: number | null
}

/** A token in force, and the listeners for its end. */
interface LiveToken {
  /** Without its uses since it was read. */
  readonly stored: StoredToken
  lastUsedAt: number | null
  readonly digest: Uint8Array
  readonly holders: Bag<() => void>
  /** The token itself, after its first use; in memory only. */
  text: string | null
  /** The last grant, and the node's tier at that time. */
  given: { readonly nodeTier: Tier; readonly grant: TokenGrant } | null
}

/** The tokens by which programs use this node over HTTP. Only their hashes are kept. */
export class Tokens {
  readonly #deps: TokenDeps
  readonly #byHash = new Map<string, LiveToken>()
  /** The tokens that were presented, by text: hashing one for each request costs more than the rest of the lookup. */
  readonly #byText = new Map<string, LiveToken>()
  /** Revoked tokens that are still on disk, by id: until a write succeeds, a restart would bring them back. */
  readonly #unwritten = new Map<string, LiveToken>()
  readonly #revoked: Emitter<string>
  #expiry: Timer | null = null
  /** True with uses that are not written yet. */
  #isChanged = false

  constructor(deps: TokenDeps) {
    this.#deps = deps
    this.#revoked = new Emitter((error) =>
      deps.telemetry.log('error', 'a listener failed', { reason: messageOf(error) })
    )
  }

  /** Reads the tokens of earlier starts. @throws NodeError STORE_DAMAGED */
  async open(): Promise<void> {
    const kept = await this.#deps.store.read<{ readonly tokens: readonly StoredToken[] }>(DOCUMENT)
    for (const stored of kept?.tokens ?? []) this.#add(stored)
    this.#watchExpiry()
  }

  /**
   * Makes a token with no more rights than its caller. A caller with a mere token makes none: the new one would outlive
   * it.
   * @throws NodeError FORBIDDEN, USAGE, OVERLOADED when there are too many, DISK_FULL, NO_PERMISSION
   */
  async create(request: TokenRequest, by: Principal): Promise<TokenInfo & { readonly token: string }> {
    const { hash, secret, audit, clock, ids, membership } = this.#deps
    if (by.kind !== 'operator' && by.kind !== 'page')
      throw new NodeError('FORBIDDEN', 'only the operator of the node makes tokens')
    const power = grantable(request, { ...by, tier: weakest(by.tier, membership.certificate().body.maxTier) })
    const createdAt = clock.now()
    const ttlMs = request.ttlMs === undefined ? DEFAULT_TTL_MS : request.ttlMs
    const expiresAt = ttlMs === null ? null : createdAt + ttlMs
    const name = safeName(request.name ?? '', NODE_NAME) || 'token'
    const terms = { ...power, id: ids.next(ID_PREFIX), name, createdAt, expiresAt, lastUsedAt: null }
    this.#evict()
    const token = `${PREFIX}${toBase64(secret()).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')}`
    const one = this.#add({ ...terms, hash: toBase64(hash(utf8(token))) })
    try {
      await this.#save()
    } catch (error) {
      // A token that is not on disk does not exist.
      this.#remove(one)
      throw error
    }
    this.#watchExpiry()
    audit.append({ kind: 'control', code: 'token-created', rule: terms.id, reason: wordsOf(terms) })
    return { ...this.#info(one), token }
  }

  /** All stored tokens, newest first. */
  list(): TokenInfo[] {
    const all = [...this.#byHash.values()]
    return all
      .toSorted(({ stored: a }, { stored: b }) => b.createdAt - a.createdAt || a.id.localeCompare(b.id))
      .map((one) => this.#info(one))
  }

  /**
   * Ends a token at once, even when the write fails; a repeated call writes it.
   * @throws NodeError TOKEN_NOT_FOUND, AMBIGUOUS_NAME, DISK_FULL, NO_PERMISSION
   */
  async revoke(text: string): Promise<TokenInfo> {
    const one = this.#find(text)
    const info = this.#info(one)
    const { id, name } = one.stored
    if (this.#remove(one)) {
      end(one)
      this.#revoked.emit(id)
      this.#deps.audit.append({ kind: 'control', code: 'token-revoked', rule: id, reason: name })
    }
    this.#unwritten.set(id, one)
    await this.#save()
    return info
  }

  /**
   * True for the id of a stored token, valid or expired. An expired one stays until its place is needed; a revoked one
   * does not.
   */
  has(id: string): boolean {
    return [...this.#byHash.values()].some(({ stored }) => stored.id === id)
  }

  /** Calls back with the id of each revoked token, once it is refused. */
  onRevoked(listener: (id: string) => void): Unsubscribe {
    return this.#revoked.on(listener)
  }

  /** The grant of a token; null for an unknown, expired or revoked one. */
  admit(token: string): TokenGrant | null {
    const one = this.#byText.get(token) ?? this.#shown(token)
    if (one === null || this.#isOver(one.stored)) return null
    this.#noteUse(one, this.#deps.clock.now())
    return this.#grant(one)
  }

  /** Finds a token on its first use by its hash: nobody can choose a part of the hash alone. */
  #shown(token: string): LiveToken | null {
    if (!FORM.test(token)) return null
    const digest = this.#deps.hash(utf8(token))
    const one = this.#byHash.get(toBase64(digest))
    if (one === undefined || !equalDigests(one.digest, digest)) return null
    one.text = token
    this.#byText.set(token, one)
    return one
  }

  #grant(one: LiveToken): TokenGrant {
    const nodeTier = this.#deps.membership.certificate().body.maxTier
    if (one.given?.nodeTier === nodeTier) return one.given.grant
    const { id, name, tier, sandboxId, scopes } = one.stored
    // A prefix, so that the audit log never shows it as the operator.
    const principal: Principal = {
      kind: 'token',
      name: `token ${name}`,
      id,
      tier: weakest(tier, nodeTier),
      sandboxId,
      scopes
    }
    const grant: TokenGrant = { principal, onEnd: (listener) => this.#hold(one, listener) }
    one.given = { nodeTier, grant }
    return grant
  }

  /** Ends open uses of tokens and writes their last uses. */
  async close(): Promise<void> {
    this.#deps.clock.clear(this.#expiry)
    for (const one of this.#byHash.values()) end(one)
    if (this.#isChanged) await this.#saveUses()
  }

  #add(stored: StoredToken): LiveToken {
    const { hash, lastUsedAt } = stored
    const one: LiveToken = {
      stored,
      lastUsedAt,
      digest: fromBase64(hash) ?? utf8(''),
      holders: new Bag(),
      text: null,
      given: null
    }
    this.#byHash.set(hash, one)
    return one
  }

  /** Refuses the token from now on; false when it was already refused. */
  #remove(one: LiveToken): boolean {
    if (one.text !== null) this.#byText.delete(one.text)
    return this.#byHash.delete(one.stored.hash)
  }

  #evict(): void {
    if (this.#byHash.size < TOKENS_MAX) return
    for (const one of this.#byHash.values()) if (this.#isOver(one.stored)) this.#remove(one)
    if (this.#byHash.size >= TOKENS_MAX) {
      throw new NodeError('OVERLOADED', `this node has ${TOKENS_MAX} tokens already`, {
        next: ['a2a-node a2a token ls', 'a2a-node a2a token revoke <id>']
      })
    }
  }

  #find(text: string): LiveToken {
    const all = new Map([...this.#byHash.values(), ...this.#unwritten.values()].map((one) => [one.stored.id, one]))
    return resolveId(text, all, TOKEN_IDS)
  }

  #isOver({ expiresAt }: StoredToken): boolean {
    return expiresAt !== null && expiresAt <= this.#deps.clock.now()
  }

  #hold(one: LiveToken, listener: () => void): Unsubscribe {
    if (this.#byHash.get(one.stored.hash) !== one || this.#isOver(one.stored)) {
      listener()
      return () => {}
    }
    one.holders.add(listener)
    return () => one.holders.delete(listener)
  }

  /** Sets a timer for the next expiry, to end open uses of that token. */
  #watchExpiry(): void {
    const { clock } = this.#deps
    clock.clear(this.#expiry)
    const ends = [...this.#byHash.values()].flatMap(({ stored }) =>
      stored.expiresAt === null || this.#isOver(stored) ? [] : [stored.expiresAt]
    )
    if (ends.length === 0) return
    this.#expiry = clock.after(Math.min(...ends) - clock.now(), () => {
      for (const one of this.#byHash.values()) if (this.#isOver(one.stored)) end(one)
      this.#watchExpiry()
    })
  }

  #noteUse(one: LiveToken, now: number): void {
    const { lastUsedAt } = one
    // The system clock may have been set back.
    const at = Math.max(now, one.stored.createdAt, lastUsedAt ?? 0)
    if (at === lastUsedAt) return
    one.lastUsedAt = at
    this.#isChanged = true
    if (lastUsedAt === null || Math.floor(at / USED_MS) > Math.floor(lastUsedAt / USED_MS)) void this.#saveUses()
  }

  /** A failed write of a use is no reason to refuse it. */
  async #saveUses(): Promise<void> {
    await this.#save().catch((error: unknown) => {
      this.#deps.telemetry.log('warn', 'the use of a token could not be kept', { reason: messageOf(error) })
    })
  }

  async #save(): Promise<void> {
    this.#isChanged = false
    const revoked = [...this.#unwritten.keys()]
    try {
      await this.#deps.store.write(DOCUMENT, {
        tokens: [...this.#byHash.values()].map(({ stored, lastUsedAt }) => ({ ...stored, lastUsedAt }))
      })
    } catch (error) {
      this.#isChanged = true
      throw error
    }
    for (const id of revoked) this.#unwritten.delete(id)
  }

  #info({ stored, lastUsedAt }: LiveToken): TokenInfo {
    const { id, name, tier, sandboxId, scopes, createdAt, expiresAt } = stored
    return {
      id,
      name,
      tier: tierText(weakest(tier, this.#deps.membership.certificate().body.maxTier)),
      sandboxId,
      scopes,
      createdAt: iso(createdAt),
      expiresAt: expiresAt === null ? null : iso(expiresAt),
      lastUsedAt: lastUsedAt === null ? null : iso(Math.max(createdAt, lastUsedAt)),
      state: this.#isOver(stored) ? 'expired' : 'active'
    }
  }
}

/**
 * The rights of a requested token: at most the caller's, and the defaults where none is requested.
 * @throws NodeError FORBIDDEN, USAGE
 */
function grantable(request: TokenRequest, by: TokenPower): TokenPower {
  const tier = request.tier ?? weakest(by.tier, DEFAULT_TIER)
  if (tier < by.tier)
    throw new NodeError('FORBIDDEN', `an ${tierText(by.tier)} node cannot make an ${tierText(tier)} token`)
  if (request.sandboxId !== undefined && !sandboxIdSchema.safeParse(request.sandboxId).success) {
    throw new NodeError('USAGE', 'the id of a sandbox has 1 to 64 of A-Z a-z 0-9 . _ -, a letter or digit first')
  }
  const sandboxId = request.sandboxId ?? by.sandboxId
  if ((by.sandboxId ?? sandboxId) !== sandboxId)
    throw new NodeError('FORBIDDEN', 'a sandboxed caller makes tokens of its own sandbox only')
  const asked = request.scopes ?? DEFAULT_SCOPES
  const lacking = request.scopes?.find((one) => !by.scopes.includes(one))
  if (lacking !== undefined) throw new NodeError('FORBIDDEN', `this caller does not have the scope ${lacking} itself`)
  return { tier, sandboxId, scopes: SCOPES.filter((one) => asked.includes(one) && by.scopes.includes(one)) }
}

/** Compares in constant time. */
function equalDigests(one: Uint8Array, other: Uint8Array): boolean {
  let differing = one.length ^ other.length
  for (const [at, byte] of other.entries()) differing |= byte ^ (one[at] ?? 0)
  return differing === 0
}

function wordsOf({ name, tier, sandboxId, scopes }: Omit<StoredToken, 'hash'>): string {
  return `${name}: ${tierText(tier)}${sandboxId === null ? '' : ` in sandbox ${sandboxId}`}, ${scopes.join(', ')}`
}

function iso(at: number): string {
  return new Date(at).toISOString()
}

function end({ holders }: LiveToken): void {
  for (const tell of [...holders]) {
    holders.delete(tell)
    tell()
  }
}
