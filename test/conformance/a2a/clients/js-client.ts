import { TaskState, type Task } from '@a2a-js/sdk'
import { request, sdkClient } from '../../../support/a2a/sdk-clients.js'
import { doChecks, fails, type ForeignClient, same } from './checks.js'

const WAITS_NOT = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  historyLength: undefined,
  returnImmediately: true
}

/** The official client of A2A 1.0 in JavaScript. */
export const JS_CLIENT: ForeignClient = {
  name: 'a2a-js 1.3.0',
  transports: ['JSONRPC', 'HTTP+JSON'],
  lacks: {},
  prepare: () => Promise.resolve(null),
  async run(target, transport) {
    const client = await sdkClient(target, transport)
    const task = async (text: string, id?: string): Promise<Task> =>
      (await client.sendMessage(request(text, id))) as Task
    const state = ({ status }: Task): unknown => status?.state
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
        same(
          [state(done), done.artifacts[0]?.parts[0]?.content],
          [TaskState.TASK_STATE_COMPLETED, { $case: 'text', value: 'you said hello' }]
        )
      },
      async stream() {
        const texts: unknown[] = []
        let last: unknown
        for await (const { payload } of client.sendMessageStream(request('chunks of words'))) {
          if (payload?.$case === 'artifactUpdate') texts.push(payload.value.artifact?.parts[0]?.content?.value)
          if (payload?.$case === 'statusUpdate') last = payload.value.status?.state
        }
        same([texts, last], [['one ', 'two ', 'three'], TaskState.TASK_STATE_COMPLETED])
      },
      async get() {
        same(state(await client.getTask({ tenant: '', id: id() })), TaskState.TASK_STATE_COMPLETED)
      },
      async cancel() {
        const begun = (await client.sendMessage({ ...request('hold on'), configuration: WAITS_NOT })) as Task
        const canceled = await client.cancelTask({ tenant: '', id: begun.id, metadata: undefined })
        same(state(canceled), TaskState.TASK_STATE_CANCELED)
      },
      async list() {
        const listing = { tenant: '', contextId: done?.contextId ?? '', status: 0, pageToken: '', pageSize: 10 }
        const { tasks } = await client.listTasks({ ...listing, statusTimestampAfter: undefined })
        same(
          tasks.map((one) => one.id),
          [id()]
        )
      },
      async turns() {
        const asked = await task('ask me')
        const [again, last] = [await task('more of it', asked.id), await task('finish', asked.id)]
        same(
          [state(asked), again.id, state(again), last.id, state(last)],
          [
            TaskState.TASK_STATE_INPUT_REQUIRED,
            asked.id,
            TaskState.TASK_STATE_INPUT_REQUIRED,
            asked.id,
            TaskState.TASK_STATE_COMPLETED
          ]
        )
      },
      async push() {
        const config = { tenant: '', taskId: id(), id: 'mine', url: target.hook, token: '', authentication: undefined }
        same((await client.createTaskPushNotificationConfig(config)).url, target.hook)
        const named = { tenant: '', taskId: id(), id: 'mine' }
        same((await client.getTaskPushNotificationConfig(named)).url, target.hook)
        const listing = { tenant: '', taskId: id(), pageSize: 0, pageToken: '' }
        const count = async (): Promise<number> => (await client.listTaskPushNotificationConfig(listing)).configs.length
        same(await count(), 1)
        await client.deleteTaskPushNotificationConfig(named)
        same(await count(), 0)
      },
      async errors() {
        await fails(client.getTask({ tenant: '', id: 'task_none' }), 'TaskNotFoundError')
        await fails(client.cancelTask({ tenant: '', id: id(), metadata: undefined }), 'TaskNotCancelableError')
      }
    })
  }
}
