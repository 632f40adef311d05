import crypto from 'hypercore-crypto'
import { bytesToText, keyToText, type MeshId, type NodeId, utf8 } from '../../src/kit/ids.js'
import { canonicalJson } from '../../src/kit/json.js'
import type { Hash, Sign, Verify } from '../../src/kit/sign.js'
import { encodeMeshInfo } from '../../src/domain/membership/codec.js'
import { fold, type FoldResult, reads } from '../../src/domain/membership/fold/fold.js'
import { seal, sealJoin } from '../../src/domain/membership/signing.js'
import type {
  Certificate,
  Entry,
  EntryBody,
  InviteTerms,
  JoinRequest,
  MembershipView,
  MeshSettings,
  SignedCard,
  SignedCertificate
} from '../../src/domain/membership/types.js'
import { buildView } from '../../src/domain/membership/view.js'
import type { CardBody } from '../../src/domain/card/card.js'
import type { DocumentAccess } from '../../src/domain/document/access.js'

/** ed25519, as nodes check it. */
export const verify: Verify = (message, signature, publicKey) =>
  signature.byteLength === 64 && publicKey.byteLength === 32 && crypto.verify(message, signature, publicKey)

/** BLAKE2b-256. */
export const hash: Hash = (...parts) => crypto.hash(parts)

/** A node (or a stranger) of a test: the same name gives the same keys. */
export interface Actor {
  readonly name: string
  readonly id: NodeId
  readonly coreKey: string
  readonly sign: Sign
}

const actors = new Map<string, Actor>()
const termsPairs = new Map<string, ReturnType<typeof crypto.keyPair>>()

/** The actor of a name. */
export function actor(name: string): Actor {
  const known = actors.get(name) ?? makeActor(name)
  actors.set(name, known)
  return known
}

function makeActor(name: string): Actor {
  const pair = crypto.keyPair(hash(utf8(`actor/${name}`)))
  return {
    name,
    id: keyToText(pair.publicKey),
    coreKey: keyText(`core/${name}`),
    sign: (message) => crypto.sign(message, pair.secretKey)
  }
}

/** A 32-byte key or id made of a name, as text. */
export function keyText(name: string): string {
  return keyToText(hash(utf8(name)))
}

/** The mesh of the tests. */
export const MESH: MeshId = keyText('mesh')

/** A certificate's body; every field can be replaced. */
export function certificateBody(
  of: { readonly issuer: Actor; readonly node: Actor } & Partial<Omit<Certificate, 'issuer'>>
): Certificate {
  const { issuer, node, ...rest } = of
  return {
    mesh: MESH,
    nodeKey: node.id,
    name: node.name,
    maxTier: 1,
    mayInvite: false,
    mayWrite: false,
    issuedAt: 1000,
    serial: 1,
    issuer: issuer.id,
    ...rest
  }
}

/** A certificate signed by its issuer. */
export function certificate(of: Parameters<typeof certificateBody>[0]): SignedCertificate {
  return seal('certificate', certificateBody(of), of.issuer)
}

/** Terms of an invite; the same name gives the same id. */
export function inviteTerms(name: string, terms: Partial<InviteTerms> = {}): InviteTerms {
  const pair = termsPairs.get(name) ?? crypto.keyPair(hash(utf8(`invite/${name}`)))
  termsPairs.set(name, pair)
  const data = encodeMeshInfo({ v: 1, owner: actor('owner').id, name: 'home', mesh: MESH })
  return {
    id: keyText(`invite/${name}`),
    publicKey: keyToText(pair.publicKey),
    tier: 1,
    admin: false,
    uses: 1,
    createdAt: 1000,
    expiresAt: 601_000,
    additional: { data: bytesToText(data), signature: bytesToText(crypto.sign(data, pair.secretKey)) },
    ...terms
  }
}

/** An access list of a document that lets everybody see it, and L0 and L1 in no sandbox write it. */
export const ACCESS: DocumentAccess = {
  see: { members: [], maxTier: 3, sandboxes: ['ci'], unsandboxed: true },
  write: { members: [], maxTier: 1, sandboxes: [], unsandboxed: true },
  serial: 1
}

/** Settings of a mesh where every tier opens to every other. */
export const SETTINGS: MeshSettings = {
  tierRules: ([0, 1, 2, 3] as const).map((sourceTier) => ({
    sourceTier,
    allowedTargetTiers: [0, 1, 2, 3],
    requiresEscalationJustification: false
  })),
  sandbox: { enforced: true, crossSandboxAllowList: ['text'] }
}

/** What a newcomer asks an invite's admin. */
export function joinRequest(node: Actor, inviteId: string): JoinRequest {
  return sealJoin({ inviteId, nodeKey: node.id, coreKey: node.coreKey, name: node.name }, node.sign)
}

/** Body of a card. */
export function cardBody(id: string, card: Partial<CardBody> = {}): CardBody {
  return {
    id,
    name: id,
    version: '1.0.0',
    description: '',
    tier: 1,
    protocols: ['a2a/1.0'],
    endpoints: [],
    capabilities: [],
    revision: 1,
    ...card
  }
}

/** Capabilities that make a card of about 62 KB. */
export const LARGE: CardBody['capabilities'] = Array.from({ length: 15 }, (_, at) => ({
  id: `large-${at}`,
  name: 'large',
  description: 'x'.repeat(4000),
  inputSchema: true,
  outputSchema: true
}))

/** A card signed by a node. */
export function signedCard(node: Actor, body: CardBody): SignedCard {
  return seal('card', body, node)
}

/** The records of a view and every entry that was folded into them, as one node's log adapter would hold them. */
export class LogModel {
  readonly records = new Map<string, unknown>()
  readonly entries: { readonly entry: Entry; readonly isBootstrapRelay: boolean }[] = []
  /** Writers as addWriters and removeWriters made them; the founder's core is one from the start. */
  readonly writers: Set<string>

  constructor(owner: Actor = actor('owner')) {
    this.writers = new Set([owner.coreKey])
  }

  /** Signs and folds an entry. */
  write(by: Actor, body: EntryBody): FoldResult {
    return this.apply(seal('entry', body, by))
  }

  /** Folds an entry; only the keys it reads are shown to the fold. */
  apply(entry: Entry, isBootstrapRelay = false): FoldResult {
    const shown = new Map<string, unknown>()
    for (const key of reads(entry)) if (this.records.has(key)) shown.set(key, this.records.get(key))
    const result = fold(shown, entry, { verify, isBootstrapRelay, meshId: MESH })
    for (const [key, value] of result.puts) {
      if (value === null) this.records.delete(key)
      else this.records.set(key, value)
    }
    for (const core of result.addWriters) this.writers.add(core)
    for (const core of result.removeWriters) this.writers.delete(core)
    this.entries.push({ entry, isBootstrapRelay })
    return result
  }

  /** The view of the records. */
  view(): MembershipView {
    return buildView(this.records)
  }

  /** Records and writers as text, to compare. */
  state(): string {
    return canonicalJson([[...this.records].sort(([a], [b]) => (a < b ? -1 : 1)), [...this.writers].sort()])
  }

  /** Founds the mesh. */
  found(owner: Actor = actor('owner'), at = 1000): FoldResult {
    const own = certificate({ issuer: owner, node: owner, maxTier: 0, mayInvite: true, mayWrite: true, issuedAt: at })
    return this.apply(
      seal(
        'entry',
        { kind: 'founding', mesh: MESH, name: 'home', certificate: own, coreKey: owner.coreKey, at },
        owner
      ),
      true
    )
  }

  /** Logs an invite. */
  invite(by: Actor, terms: InviteTerms): FoldResult {
    return this.write(by, { kind: 'invite', mesh: MESH, invite: terms })
  }

  /** Admits a node by an invite, as `by` would issue it. */
  admit(by: Actor, node: Actor, terms: InviteTerms): FoldResult {
    return this.write(by, admission(by, node, { terms }))
  }

  /** Logs a new certificate of a member. */
  recertify(by: Actor, body: Certificate): FoldResult {
    return this.write(by, { kind: 'certificate', mesh: MESH, certificate: seal('certificate', body, by) })
  }

  /** Revokes a member. */
  revoke(by: Actor, node: Actor, at = 5000): FoldResult {
    return this.write(by, { kind: 'revocation', mesh: MESH, nodeKey: node.id, at, reason: 'lost' })
  }

  /** Logs a card that `of` (default: the author) signed. */
  card(by: Actor, body: CardBody, of: Actor = by): FoldResult {
    return this.write(by, { kind: 'card', mesh: MESH, card: signedCard(of, body) })
  }

  /** Removes a card. */
  uncard(by: Actor, agentId: string, revision: number): FoldResult {
    return this.write(by, { kind: 'card-removed', mesh: MESH, agentId, revision })
  }

  /** The certificate of a member in force. */
  certificateOf(node: Actor): Certificate {
    const member = this.view().members.get(node.id)
    if (member === undefined) throw new Error(`${node.name} is no member`)
    return member.certificate.body
  }

  /** Invites and admits in one step; returns the terms. */
  join(by: Actor, node: Actor, changes: Partial<InviteTerms> = {}): InviteTerms {
    const terms = inviteTerms(`${by.name}/${node.name}`, changes)
    this.invite(by, terms)
    this.admit(by, node, terms)
    return terms
  }
}

/** The body of an admission that grants what the terms say. */
export function admission(
  by: Actor,
  node: Actor,
  { terms, changes = {} }: { readonly terms: InviteTerms; readonly changes?: Partial<Omit<Certificate, 'issuer'>> }
): Extract<EntryBody, { readonly kind: 'admission' }> {
  const sandbox = terms.sandboxId === undefined ? {} : { sandboxId: terms.sandboxId }
  const granted = {
    maxTier: terms.tier,
    mayInvite: terms.admin,
    mayWrite: terms.admin,
    inviteId: terms.id,
    issuedAt: terms.createdAt + 1,
    ...sandbox
  }
  return {
    kind: 'admission',
    mesh: MESH,
    certificate: certificate({ issuer: by, node, ...granted, ...changes }),
    coreKey: node.coreKey,
    request: joinRequest(node, terms.id)
  }
}

/** A founded mesh. */
export function founded(): LogModel {
  const log = new LogModel()
  log.found()
  return log
}
