import Autobase from 'autobase'
import type { ApplyHost, ApplyNode } from 'autobase'
import b4a from 'b4a'
import type Corestore from 'corestore'
import type { NoiseStream } from 'hyperswarm'
import Hyperbee from 'hyperbee'
import type { Clock } from '../../kit/clock.js'
import { messageOf, NodeError } from '../../kit/errors.js'
import { Emitter } from '../../kit/events.js'
import { keyFromText, keyToText } from '../../kit/ids.js'
import type { MeshId, NodeId } from '../../kit/ids.js'
import type { Sign, Verify } from '../../kit/sign.js'
import { isApplied } from '../../domain/membership/applied.js'
import { decodeEntry, encodeEntry } from '../../domain/membership/codec.js'
import { fold, reads } from '../../domain/membership/fold.js'
import { seal } from '../../domain/membership/signing.js'
import type { Entry, EntryBody, MembershipView } from '../../domain/membership/types.js'
import { buildView, EMPTY_VIEW } from '../../domain/membership/view.js'
import type { MemberLog } from '../../ports/mesh.js'
import type { Telemetry } from '../../ports/telemetry.js'

/** How long a submitted entry may take to be applied, in milliseconds, unless the caller says otherwise. */
const SUBMIT_TIMEOUT_MS = 10_000
/** How often a waiting entry is offered again, in milliseconds. */
const OFFER_AGAIN_MS = 1000

/** What a log needs. */
export interface LogParts {
  readonly store: Corestore
  /** null: a new mesh is made. */
  readonly mesh: null | { readonly key: Uint8Array; readonly encryptionKey: Uint8Array }
  readonly nodeId: NodeId
  readonly sign: Sign
  readonly verify: Verify
  readonly clock: Clock
  readonly telemetry: Telemetry
}

/** Hands an encoded entry to any connected writer. True: one has appended it. */
export type Courier = (entry: Uint8Array) => Promise<boolean>

/** The Autobase log behind the MemberLog port, and what the rest of the mesh adapter needs of it. */
export interface Log extends MemberLog {
  readonly meshId: MeshId
  readonly key: Uint8Array
  readonly discoveryKey: Uint8Array
  readonly encryptionKey: Uint8Array
  /** Key (z32) of this node's own writer core. */
  readonly coreKey: string
  /** Attaches replication to a stream that the gate has passed. */
  replicate(stream: NoiseStream): void
  /** Appends an entry that another node signed. False: this node is no writer now. */
  appendFor(entry: Uint8Array): Promise<boolean>
  setCourier(courier: Courier): void
  /** A new link is there: offer waiting entries now. */
  nudge(): void
  /** Blocks in this node's own writer core, for the idle check. */
  ownLength(): number
  close(): Promise<void>
}

/** Opens (or founds) the mesh log in a store. */
export async function openLog(parts: LogParts): Promise<Log> {
  const { clock, telemetry } = parts
  const base: Autobase<Hyperbee> = new Autobase<Hyperbee>(parts.store, parts.mesh?.key ?? null, {
    open: (store) => new Hyperbee(store.get('members'), { keyEncoding: 'utf-8', valueEncoding: 'json', extension: false }),
    apply: (nodes, view, host) => applyNodes({ nodes, view, host, base, verify: parts.verify }),
    encrypt: true,
    ...(parts.mesh === null ? {} : { encryptionKey: parts.mesh.encryptionKey }),
    valueEncoding: 'binary'
  })
  base.on('error', (error) => telemetry.log('error', 'the mesh log closed itself', { reason: messageOf(error) }))
  await base.ready()
  const encryptionKey = base.encryptionKey
  if (encryptionKey === null) throw new NodeError('STORE_DAMAGED', 'the mesh log has no encryption key')

  const changes = new Emitter<MembershipView>((error) =>
    telemetry.log('error', 'a listener of the log failed', { reason: messageOf(error) })
  )
  let view: MembershipView = EMPTY_VIEW
  let builtVersion = -1
  let closed = false

  // One rebuild at a time; a change during a rebuild asks for one more.
  let rebuilding: Promise<void> | null = null
  let stale = false
  function refresh(): Promise<void> {
    stale = true
    rebuilding ??= rebuild().finally(() => {
      rebuilding = null
    })
    return rebuilding
  }
  async function rebuild(): Promise<void> {
    while (stale && !closed) {
      stale = false
      const snapshot = base.view.snapshot()
      try {
        if (snapshot.version === builtVersion && !(await wasReordered(snapshot))) continue
        const records: [string, unknown][] = []
        for await (const { key, value } of snapshot.createReadStream()) records.push([key, value])
        view = buildView(records)
        builtVersion = snapshot.version
        builtHash = await hashOf(snapshot)
      } finally {
        await snapshot.close()
      }
      changes.emit(view)
    }
  }
  // A reorder of unsigned entries can leave the version as it was with other content.
  let builtHash: Uint8Array | null = null
  async function wasReordered(snapshot: Hyperbee): Promise<boolean> {
    const hash = await hashOf(snapshot)
    return builtHash === null || hash === null || !b4a.equals(hash, builtHash)
  }

  base.on('update', () => {
    refresh().catch((error: unknown) => {
      if (!closed) telemetry.log('error', 'the mesh log could not be read', { reason: messageOf(error) })
    })
  })
  await base.update()
  await refresh()

  const appender = batchAppender((values) => base.append(values))
  let courier: Courier = () => Promise.resolve(false)
  const waiting = new Set<() => void>()

  async function offer(bytes: Uint8Array): Promise<boolean> {
    if (closed) return false
    if (base.writable)
      return appender(bytes).then(
        () => true,
        () => false
      )
    return courier(bytes)
  }

  async function submit(body: EntryBody, timeoutMs: number = SUBMIT_TIMEOUT_MS): Promise<void> {
    const entry: Entry = seal('entry', body, { id: parts.nodeId, sign: parts.sign })
    const bytes = encodeEntry(entry)
    telemetry.count('log_entries_submitted', body.kind)
    await new Promise<void>((resolve, reject) => {
      let offering = false
      let taken = false
      const deadline = clock.after(timeoutMs, () => finish(new NodeError('TIMEOUT', timeoutMessage(taken))))
      const again = clock.every(OFFER_AGAIN_MS, attempt)
      const stop = changes.on(attempt)
      waiting.add(attempt)
      attempt()

      function attempt(): void {
        if (isApplied(view, entry)) return finish(null)
        if (closed) return finish(new NodeError('INTERNAL', 'the mesh log is closed'))
        if (offering || taken) return
        offering = true
        offer(bytes).then(
          (ok) => {
            offering = false
            taken = ok
            if (ok) void refresh().then(attempt, () => {})
          },
          () => {
            offering = false
          }
        )
      }
      function finish(error: NodeError | null): void {
        clock.clear(deadline)
        clock.clear(again)
        stop()
        waiting.delete(attempt)
        if (error === null) resolve()
        else reject(error)
      }
    })
  }

  return {
    meshId: keyToText(base.key),
    key: base.key,
    discoveryKey: base.discoveryKey,
    encryptionKey,
    coreKey: keyToText(base.local.key),
    view: () => view,
    onChange: (listener) => changes.on(listener),
    submit,
    writable: () => base.writable,
    length: () => base.core.length,
    ownLength: () => base.local.length,
    replicate: (stream) => void base.replicate(stream),
    appendFor: async (entry) => {
      if (!base.writable || closed) return false
      await appender(entry)
      return true
    },
    setCourier: (next) => {
      courier = next
    },
    nudge: () => {
      for (const attempt of [...waiting]) attempt()
    },
    close: async () => {
      closed = true
      for (const attempt of [...waiting]) attempt()
      await rebuilding?.catch(() => {})
      await base.close()
    }
  }
}

function timeoutMessage(taken: boolean): string {
  return taken
    ? 'the entry was written, but the log did not accept it: this node may not make that change'
    : 'no node that may write the log could be reached'
}

async function hashOf(bee: Hyperbee): Promise<Uint8Array | null> {
  return bee.core.length === 0 ? null : bee.core.treeHash()
}

/** Appends through one mutex: concurrent appends to an Autobase are not safe. What waits together goes as one batch. */
function batchAppender(append: (values: Uint8Array[]) => Promise<unknown>): (value: Uint8Array) => Promise<void> {
  let queued: { value: Uint8Array; resolve: () => void; reject: (error: unknown) => void }[] = []
  let running = false
  async function run(): Promise<void> {
    if (running) return
    running = true
    while (queued.length > 0) {
      const batch = queued
      queued = []
      try {
        await append(batch.map((one) => one.value))
        for (const one of batch) one.resolve()
      } catch (error) {
        for (const one of batch) one.reject(error)
      }
    }
    running = false
  }
  return (value) =>
    new Promise((resolve, reject) => {
      queued.push({ value, resolve, reject })
      void run()
    })
}

interface ApplyParts {
  readonly nodes: readonly ApplyNode[]
  readonly view: Hyperbee
  readonly host: ApplyHost
  readonly base: Autobase<Hyperbee>
  readonly verify: Verify
}

/** Deterministic and total: a throw in here would close the base on every honest node, so bad entries are skipped. */
async function applyNodes({ nodes, view, host, base, verify }: ApplyParts): Promise<void> {
  const batch = view.batch({ update: false })
  for (const node of nodes) {
    if (node.value === null) continue
    const decoded = decodeEntry(node.value)
    if (!decoded.ok) continue
    const records = new Map<string, unknown>()
    for (const key of reads(decoded.entry)) {
      const found = await batch.get(key)
      if (found !== null) records.set(key, found.value)
    }
    const result = fold(records, decoded.entry, {
      verify,
      isBootstrapCourier: b4a.equals(node.from.key, base.key),
      meshId: keyToText(base.key)
    })
    for (const [key, value] of result.puts) {
      if (value === null) await batch.del(key)
      else await batch.put(key, value)
    }
    for (const core of result.addWriters) await host.addWriter(keyFromText(core), { indexer: false })
    for (const core of result.removeWriters) {
      const key = keyFromText(core)
      if (host.removeable(key)) await host.removeWriter(key)
    }
  }
  await batch.flush()
}
