import type Corestore from 'corestore'
import type Hypercore from 'hypercore'
import type { Clock } from '../../../kit/clock.js'
import { keyFromText, type MeshId } from '../../../kit/ids.js'
import type { MembershipView } from '../../../domain/membership/types.js'
import type { MemberLog } from '../../../ports/mesh.js'
import type { Telemetry } from '../../../ports/telemetry.js'
import { WriterCores } from '../cores/writer-cores.js'
import { RevokedCores } from './revoked-cores.js'
import type { SignedView } from './signed-view.js'

/** Dependencies of {@link MemberCores}. */
export interface MemberCoresDeps {
  readonly store: Corestore
  readonly clock: Clock
  readonly telemetry: Telemetry
  readonly meshId: MeshId
  /** Key (z32) of this node's own core. */
  readonly self: string
  readonly signedView: Pick<SignedView, 'orderedBlocks'>
}

/** The writer cores of all members: watches those in use for forks, and removes those of revoked members. */
export class MemberCores {
  readonly #deps: MemberCoresDeps
  readonly #revoked: RevokedCores
  #writers: WriterCores | null = null

  constructor(deps: MemberCoresDeps) {
    this.#deps = deps
    const { self, clock, telemetry, signedView } = deps
    const open = (core: string): Hypercore => this.#open(core)
    this.#revoked = new RevokedCores({
      self,
      clock,
      telemetry,
      open,
      needed: (...core) => signedView.orderedBlocks(...core)
    })
  }

  /** Watches the cores of writers, now and after each change of the log, for forks. Call it once. */
  follow(onForked: (core: string) => void, log: Pick<MemberLog, 'view' | 'onChange'>): void {
    const cores = new WriterCores({ clock: this.#deps.clock, open: (core) => this.#open(core), onForked })
    // The first core stays a writer, also after its owner's home was replaced: it alone confirms the log.
    const follow = ({ writers }: MembershipView): void => cores.follow([this.#deps.meshId, ...writers.active])
    this.#writers = cores
    log.onChange(follow)
    follow(log.view())
  }

  /** The view changed: see {@link RevokedCores.review}. */
  review(view: MembershipView): void {
    this.#revoked.review(view)
  }

  /** Closes all cores. */
  async close(): Promise<void> {
    await this.#revoked.close()
    await this.#writers?.close()
  }

  #open(core: string): Hypercore {
    return this.#deps.store.get({ key: keyFromText(core), writable: false })
  }
}
