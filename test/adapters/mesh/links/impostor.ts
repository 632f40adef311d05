import type { Assert } from 'brittle'
import BlindPairing from 'blind-pairing'
import type { MemberRequest } from 'blind-pairing'
import crypto from 'hypercore-crypto'
import { hash } from '../../../../src/adapters/mesh/network/sodium.js'
import { keyToText } from '../../../../src/kit/ids.js'
import type { NodeId } from '../../../../src/kit/ids.js'
import { chainOf } from '../../../../src/domain/membership/chain.js'
import { decodeJoinData, encodeMeshInfo } from '../../../../src/domain/membership/codec.js'
import { decodeInviteCode } from '../../../../src/domain/membership/invites/invite-code.js'
import { inviteSeed, rendezvousKey } from '../../../../src/domain/membership/invites/short-code.js'
import { seal } from '../../../../src/domain/membership/signing.js'
import type {
  Certificate,
  CertificateChain,
  MemberRecord,
  MembershipView,
  SignedCertificate
} from '../../../../src/domain/membership/types.js'
import { EMPTY_VIEW } from '../../../../src/domain/membership/view.js'
import { inviteCode, type Lab, type LabNode, meshLab, untilView } from '../lab.js'

/** What an impostor says of the mesh; what is absent is true. */
export interface Lies {
  /** It calls itself the owner; false: it names the true owner, and admits as if it were an admin. */
  readonly isOwner: boolean
  readonly name?: string
  /** 32 bytes, for a mesh that nobody else can read. */
  readonly encryptionKey?: Uint8Array
  /** The code is a short one. */
  readonly isShort?: boolean
}

/** A mesh in which only an impostor is online. */
export interface ImpostorScene {
  readonly lab: Lab
  /** Offline; to be opened again. */
  readonly owner: LabNode
  readonly impostor: Impostor
  /** The node of the impostor. */
  readonly member: LabNode
  /** A code with one use left, by which the impostor joined. */
  readonly code: string
}

/**
 * A member joins by a code with two uses. Then its owner goes offline, and the member answers newcomers by that code.
 */
export async function impostorScene(t: Assert, lies: Lies): Promise<ImpostorScene> {
  const lab = await meshLab(t)
  const owner = await lab.found('owner')
  await owner.start()
  const code = await inviteCode(owner, { uses: 2, isShort: lies.isShort === true })
  const member = await lab.join('member', code)
  await member.start()
  await member.seen.link(owner.id)
  await untilView(member, (view) => view.members.has(member.id))
  await owner.close()
  return { lab, owner, member, code, impostor: await Impostor.answer(t, member, { ...lies, code }) }
}

/** A member without the right to invite that has the code of an invite, and lets newcomers into a mesh of its own. */
export class Impostor {
  /** Newcomers that it answered. */
  readonly answered: NodeId[] = []
  /** Resolves when a newcomer has received its certificates, true and false ones. */
  readonly received: Promise<void>
  #tellReceived: () => void = () => {}
  readonly #node: LabNode
  readonly #lies: Lies
  readonly #seed: Uint8Array
  /** Whose discovery key is the topic of its newcomers. */
  readonly #topicKey: Uint8Array
  readonly #encryptionKey: Uint8Array
  readonly #own: CertificateChain
  readonly #blind: BlindPairing

  private constructor(node: LabNode, code: string, lies: Lies) {
    const { log } = node.mesh
    const decoded = decodeInviteCode(code, hash)
    if (!decoded.ok) throw new Error(decoded.reason)
    this.received = new Promise((resolve) => (this.#tellReceived = resolve))
    this.#node = node
    this.#lies = lies
    this.#seed =
      decoded.kind === 'long'
        ? BlindPairing.decodeInvite(decoded.invite).seed
        : Buffer.from(inviteSeed(decoded.secret, hash))
    const { id } = BlindPairing.createInvite(log.key, { seed: this.#seed })
    this.#topicKey = decoded.kind === 'long' ? log.key : rendezvousKey(id, hash)
    this.#encryptionKey = lies.encryptionKey ?? log.encryptionKey
    const chain = chainOf(log.view(), node.id) ?? []
    this.#own = lies.isOwner ? [this.#certify(node.id, { maxTier: 0, mayInvite: true, mayWrite: true })] : chain
    this.#blind = new BlindPairing(node.swarm)
  }

  /** Begins to answer in the place of the admins, which should be offline. Ends with the test, or the node. */
  static async answer(
    t: Assert,
    node: LabNode,
    { code, ...lies }: Lies & { readonly code: string }
  ): Promise<Impostor> {
    await node.mesh.pairing.close()
    const impostor = new Impostor(node, code, lies)
    t.teardown(() => impostor.#blind.close(), { order: -1 })
    impostor.#bind()
    const discoveryKey = crypto.discoveryKey(impostor.#topicKey)
    await impostor.#blind.addMember({ discoveryKey, onadd: (request) => impostor.#confirm(request) }).flushed()
    return impostor
  }

  #bind(): void {
    const { links, log } = this.#node.mesh
    const identity = {
      meshKey: log.key,
      encryptionKey: this.#encryptionKey,
      view: () => this.#view(),
      chain: () => {
        // The gate asks for it in the moment in which it sends it.
        queueMicrotask(() => void this.#flush())
        return this.#own
      },
      onGrant: () => {},
      onRefused: () => {}
    }
    const topic = hash(Uint8Array.of(1), log.key)
    links.bind({ identity, topic, replicate: () => {}, appendFor: async () => false, onLink: () => {} })
  }

  async #flush(): Promise<void> {
    const newcomer = this.answered[0]
    const { connections } = this.#node.swarm
    const stream = [...connections].find(({ remotePublicKey }) => keyToText(remotePublicKey) === newcomer)
    if (stream !== undefined && (await stream.flush())) this.#tellReceived()
  }

  #confirm(request: MemberRequest): void {
    const { publicKey, secretKey } = crypto.keyPair(this.#seed)
    const { meshId, meshName, links, owner } = this.#node.mesh
    const asked = decodeJoinData(request.open(publicKey))
    if (!asked.ok) throw new Error(asked.reason)
    this.answered.push(asked.request.nodeKey)
    const { isOwner, name = meshName } = this.#lies
    const data = encodeMeshInfo({ v: 1, owner: isOwner ? this.#node.id : owner, name, mesh: meshId })
    const additional = { data, signature: crypto.sign(data, secretKey) }
    request.confirm({ key: this.#topicKey, encryptionKey: this.#encryptionKey, additional })
    links.review()
  }

  /** A view in which everybody that asked is a member. */
  #view(): MembershipView {
    const { mesh, id } = this.#node
    const owner = this.#lies.isOwner ? id : mesh.owner
    const above = mesh.log.view().members
    const made = new Map([[id, recordOf(this.#own[0])]])
    for (const nodeId of this.answered)
      made.set(nodeId, recordOf(this.#certify(nodeId, { inviteId: keyToText(hash(this.#seed)) })))
    const members = this.#lies.isOwner ? made : new Map([...above, ...made])
    return { ...EMPTY_VIEW, members, mesh: { id: mesh.meshId, name: mesh.meshName, owner, foundedAt: 0 } }
  }

  #certify(nodeKey: NodeId, changes: Partial<Certificate>): SignedCertificate {
    const { id, mesh } = this.#node
    const rights = { maxTier: 1, mayInvite: false, mayWrite: false } as const
    const body: Certificate = {
      mesh: mesh.meshId,
      nodeKey,
      name: 'x',
      ...rights,
      issuedAt: 1,
      serial: 1,
      issuer: id,
      ...changes
    }
    return seal('certificate', body, { id, sign: mesh.sign })
  }
}

function recordOf(certificate: SignedCertificate): MemberRecord {
  return { certificate, coreKey: certificate.body.nodeKey, order: 1, revoked: null }
}
