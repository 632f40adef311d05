import http from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { ONCE } from '../witness.mjs'
import { Load } from './load.mjs'

const DRIVERS = 2
const ENDS = ['COMPLETED', 'FAILED', 'CANCELED', 'REJECTED'].map((state) => `TASK_STATE_${state}`)

/**
 * Tasks of an A2A client at the gateway of the first node, for agents of the others, each with a webhook: of each its
 * id, by its run.
 */
export class Tasks extends Load {
  ends = new Set(ENDS)
  /** States of tasks that the webhook was told of as their last, by task. */
  #notified = new Map()
  #token = ''
  #server = null
  #hook = ''

  async open() {
    const { fleet } = this.given
    this.#token = (await (await fleet.api(fleet.names[0])).call('token.create', { tier: 0 })).token
    this.#server = http.createServer((request, response) => this.#receive(request, response))
    await new Promise((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    this.#hook = `http://127.0.0.1:${this.#server.address().port}/hook`
  }

  close() {
    this.#server?.closeAllConnections()
    this.#server?.close()
  }

  drive(isDone) {
    return this.repeat(DRIVERS, isDone, async () => {
      await this.#send().catch(() => delay(50))
      await delay(20)
    })
  }

  /** The task as a client gets it; it has no end before the webhook was told of it. */
  async look(_run, { id, agent }) {
    const { status } = await this.#call(agent, 'GetTask', { id })
    const isTold = this.#notified.get(id) === status.state
    return { state: this.ends.has(status.state) && !isTold ? `${status.state}, not notified` : status.state, status }
  }

  /** What must not be of a task; null: nothing. What may run once may also fail, when a node is killed. */
  faultOf(run, { state, status }) {
    if (state === 'TASK_STATE_COMPLETED') return this.given.effects.ended(run) === 0 ? 'completed, never run' : null
    return state === 'TASK_STATE_FAILED' ? null : `${state}: ${JSON.stringify(status.message?.parts)}`
  }

  async #send() {
    const { fleet, chance } = this.given
    const n = this.newName('t')
    const agent = `witness@${fleet.otherThan(fleet.names[0], chance)}`
    const message = { messageId: n, role: 'ROLE_USER', parts: [{ data: { n } }] }
    const configuration = { returnImmediately: true, taskPushNotificationConfig: { id: 'prove', url: this.#hook } }
    const { task } = await this.#call(agent, 'SendMessage', { message, configuration })
    this.accepted.set(`${ONCE} ${n}`, { id: task.id, agent })
  }

  async #call(agent, method, params) {
    const response = await fetch(`${this.given.gateway}/agents/${agent}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.#token}`, 'a2a-version': '1.0' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      signal: AbortSignal.timeout(10_000)
    })
    const { result, error } = await response.json()
    if (error !== undefined) throw new Error(JSON.stringify(error))
    return result
  }

  #receive(request, response) {
    let text = ''
    request.setEncoding('utf8').on('data', (more) => {
      text += more
    })
    request.on('end', () => {
      const { statusUpdate, task } = JSON.parse(text)
      const [id, state] = [statusUpdate?.taskId ?? task?.id, (statusUpdate ?? task)?.status?.state]
      if (ENDS.includes(state)) this.#notified.set(id, state)
      response.writeHead(200).end()
    })
  }
}
