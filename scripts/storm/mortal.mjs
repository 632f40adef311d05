import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { startNode } from '../bench/nodes.mjs'

/** A node that is killed and started again in the same home. */
export class Mortal {
  kills = 0
  #lab
  #options
  #node = null
  #up = deferred()

  constructor(lab, options) {
    this.#lab = lab
    this.#options = options
  }

  /** What it printed at its last start. */
  get info() {
    return this.#node.info
  }

  /** Resolves with the API of the process that runs. */
  async api() {
    return (await this.#up.promise).api
  }

  /** `join`: an invite code, for the first start. */
  async start(join) {
    this.#node = await startNode(this.#lab, { ...this.#options, join })
    this.#up.resolve(this.#node)
    return this.#node
  }

  async stop() {
    this.#up = deferred()
    await this.#node.stop()
  }

  /** SIGKILL now, then a start; with `againMs` that start gets one as well, so many milliseconds after its spawn. */
  async crash(againMs = null) {
    const node = this.#node
    this.#up = deferred()
    const gone = once(node.process, 'exit')
    node.kill('SIGKILL')
    await gone
    this.kills++
    if (againMs !== null) {
      await killedStart(this.#lab, this.#options, againMs)
      this.kills++
    }
    await this.start()
  }
}

/** Starts a node and sends it SIGKILL so many milliseconds after, ready or not. */
export async function killedStart(lab, options, afterMs) {
  let child = null
  const watched = { ...lab, spawn: (...args) => (child = lab.spawn(...args)) }
  const started = startNode(watched, options).catch(() => {})
  await delay(afterMs)
  if (child.exitCode === null) {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
  await started
}

function deferred() {
  const made = {}
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }))
  return made
}
