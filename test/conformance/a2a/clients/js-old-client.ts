import type { Task } from 'a2a03'
import { oldRequest, oldSdkClient } from '../../../support/a2a/sdk-clients.js'
import { doChecks, fails, type ForeignClient, same } from './checks.js'

/** Why clients of 0.3 do not list tasks. */
export const NO_LIST = { list: 'A2A 0.3 has no list of tasks' } as const

/** The official client of A2A 0.3 in JavaScript. */
export const OLD_JS_CLIENT: ForeignClient = {
  name: 'a2a-js 0.3.14',
  transports: ['JSONRPC', 'HTTP+JSON'],
  lacks: NO_LIST,
  prepare: () => Promise.resolve(null),
  async run(target, transport) {
    const client = await oldSdkClient(target, transport)
    const task = async (text: string, id?: string): Promise<Task> =>
      (await client.sendMessage(oldRequest(text, id))) as Task
    let done: Task | undefined
    const id = (): string => done?.id ?? ''
    return await doChecks({
      async card() {
        const card = await client.getAgentCard()
        same(
          card.skills.map((skill) => skill.id),
          ['acts.do']
        )
      },
      async send() {
        done = await task('hello')
        same([done.status.state, done.artifacts?.[0]?.parts], ['completed', [{ kind: 'text', text: 'you said hello' }]])
      },
      async stream() {
        const texts: unknown[] = []
        let last: unknown
        for await (const event of client.sendMessageStream(oldRequest('chunks of words'))) {
          if (event.kind === 'artifact-update')
            texts.push(event.artifact.parts.map((part) => (part.kind === 'text' ? part.text : part.kind)).join(''))
          if (event.kind === 'status-update') last = [event.status.state, event.final]
        }
        same(
          [texts, last],
          [
            ['one ', 'two ', 'three'],
            ['completed', true]
          ]
        )
      },
      async get() {
        same((await client.getTask({ id: id() })).status.state, 'completed')
      },
      async cancel() {
        const sent = { ...oldRequest('hold on'), configuration: { blocking: false } }
        const begun = (await client.sendMessage(sent)) as Task
        same((await client.cancelTask({ id: begun.id })).status.state, 'canceled')
      },
      async turns() {
        const asked = await task('ask me')
        const [again, last] = [await task('more of it', asked.id), await task('finish', asked.id)]
        same(
          [asked.status.state, again.id, again.status.state, last.id, last.status.state],
          ['input-required', asked.id, 'input-required', asked.id, 'completed']
        )
      },
      async push() {
        const pushNotificationConfig = { id: 'mine', url: target.hook }
        const set = await client.setTaskPushNotificationConfig({ taskId: id(), pushNotificationConfig })
        same(set.pushNotificationConfig.url, target.hook)
        const named = { id: id(), pushNotificationConfigId: 'mine' }
        same((await client.getTaskPushNotificationConfig(named)).pushNotificationConfig.url, target.hook)
        const count = async (): Promise<number> => (await client.listTaskPushNotificationConfig({ id: id() })).length
        same(await count(), 1)
        await client.deleteTaskPushNotificationConfig(named)
        same(await count(), 0)
      },
      async errors() {
        await fails(client.getTask({ id: 'task_none' }), 'TaskNotFoundError')
        await fails(client.cancelTask({ id: id() }), 'TaskNotCancelableError')
      }
    })
  }
}
