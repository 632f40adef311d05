import fs from 'node:fs'
import path from 'node:path'
import test, { type Assert } from 'brittle'
import type { Client, ClientOptions } from '@modelcontextprotocol/client'
import { mcpClient } from '../support/mcp-clients.js'
import { localMesh, type LocalNode, ROOT, untilAgent, untilOnline, untilTrue } from '../support/nodes.js'

const SCRIPT = path.join(ROOT, 'test/support/mcp/imported-server.mjs')
const PICTURE = Buffer.alloc(3000, 'pixel').toString('base64')

const NOTE = { uri: 'notes://one', mimeType: 'text/plain', text: 'the first note' }
const PLAN = {
  tools: [{ name: 'echo', inputSchema: { type: 'object' } }],
  instructions: 'Read notes before you write one.',
  resources: [
    { uri: 'notes://one', name: 'one', mimeType: 'text/plain', description: 'a note', annotations: { priority: 1 } },
    { uri: 'notes://picture', name: 'picture', mimeType: 'image/png' },
    { uri: 'notes://mit Leerzeichen & Ä/../x', name: 'odd' }
  ],
  templates: [{ uriTemplate: 'notes://by/{name}/text', name: 'note by name' }],
  prompts: [{ name: 'greet', description: 'Greets.', arguments: [{ name: 'name', required: true }] }, { name: 'show' }],
  contents: {
    'notes://one': [NOTE],
    'notes://picture': [{ uri: 'notes://picture', mimeType: 'image/png', blob: PICTURE }],
    'notes://mit Leerzeichen & Ä/../x': [{ uri: 'notes://mit Leerzeichen & Ä/../x', text: 'odd' }],
    'notes://by/a%20b/text': [{ uri: 'notes://by/a%20b/text', text: 'by name' }]
  },
  messages: {
    greet: [{ role: 'user', content: { type: 'text', text: 'Hello $name' } }],
    show: [
      { role: 'user', content: { type: 'image', data: PICTURE, mimeType: 'image/png' } },
      { role: 'assistant', content: { type: 'resource', resource: NOTE } }
    ]
  },
  values: ['anna', 'hanna', 'otto']
}

interface Scene {
  readonly a: LocalNode
  readonly b: LocalNode
  /** Clients of the importing node and of the other one, and the start of prompt names there. */
  readonly clients: readonly { readonly where: string; readonly client: Client; readonly prefix: string }[]
  replan(plan: object): void
}

/** A node that imports the scripted server, another one, and an official client at each. */
async function scene(t: Assert, options: ClientOptions = {}): Promise<Scene> {
  const mesh = await localMesh(t)
  const home = await mesh.dir()
  const file = path.join(home, 'plan')
  const replan = (plan: object): void => {
    fs.writeFileSync(`${file}.new`, JSON.stringify(plan))
    fs.renameSync(`${file}.new`, file)
  }
  replan(PLAN)
  const command = JSON.stringify([process.execPath, SCRIPT, file])
  fs.writeFileSync(path.join(home, 'config.yaml'), `mcp:\n  servers:\n    demo:\n      command: ${command}\n`)
  const a = await mesh.start('a', { home })
  await untilAgent(a, 'demo@a')
  const { code } = await a.api.call('invite.create', { trust: 'mine' })
  const b = await mesh.start('b', { join: code })
  await Promise.all([untilOnline(a, 1), untilOnline(b, 1)])
  await untilAgent(b, 'demo@a')
  const [here, there] = [await mcpClient(t, mesh, a, options), await mcpClient(t, mesh, b, options)]
  const clients = [
    { where: 'here', client: here.sdk, prefix: 'demo__' },
    { where: 'one hop away', client: there.sdk, prefix: 'demo_at_a__' }
  ]
  for (const { client } of clients)
    await untilTrue(async () => (await ofServer(client)).length > 0, 'the resources of the server are listed')
  return { a, b, clients, replan }
}

async function ofServer(client: Client): Promise<readonly { readonly uri: string; readonly name: string }[]> {
  return (await client.listResources()).resources.filter(({ uri }) => uri.startsWith('a2a://resources/demo%40a/'))
}

test('resources, prompts, completions and instructions of an imported server reach an MCP client here and one hop away', async (t: Assert) => {
  const { clients } = await scene(t)
  for (const { where, client, prefix } of clients) {
    const listed = await ofServer(client)
    t.alike(
      listed.map(({ name }) => name),
      ['one', 'picture', 'odd'],
      `${where}: resources`
    )
    const [one, picture, odd] = listed.map(({ uri }) => uri)
    t.is(one, 'a2a://resources/demo%40a/notes://one', `${where}: the URI of the server stays readable`)
    t.alike((await client.readResource({ uri: one ?? '' })).contents, [{ ...NOTE, uri: one }], `${where}: text`)
    t.alike((await client.readResource({ uri: NOTE.uri })).contents, [NOTE], `${where}: by the server's own URI`)
    const [pixels] = (await client.readResource({ uri: picture ?? '' })).contents
    t.is(pixels !== undefined && 'blob' in pixels ? pixels.blob : '', PICTURE, `${where}: bytes`)
    const [strange] = (await client.readResource({ uri: odd ?? '' })).contents
    t.is(strange !== undefined && 'text' in strange ? strange.text : '', 'odd', `${where}: a URI of any letters`)
    const { resourceTemplates } = await client.listResourceTemplates()
    const template = resourceTemplates.find(({ name }) => name === 'note by name')?.uriTemplate ?? ''
    const [named] = (await client.readResource({ uri: template.replace('{name}', 'a%20b') })).contents
    t.is(named !== undefined && 'text' in named ? named.text : '', 'by name', `${where}: a template`)
    await t.exception(client.readResource({ uri: `${one}/none` }), /no such thing/, `${where}: a missing resource`)

    const { prompts } = await client.listPrompts()
    const names = prompts.map(({ name }) => name).filter((name) => name.startsWith(prefix))
    t.alike(names, [`${prefix}greet`, `${prefix}show`], `${where}: prompts`)
    const greeting = await client.getPrompt({ name: `${prefix}greet`, arguments: { name: 'Ada' } })
    t.is(greeting.description, 'filled in')
    t.alike(greeting.messages, [{ role: 'user', content: { type: 'text', text: 'Hello Ada' } }], `${where}: a prompt`)
    const { messages } = await client.getPrompt({ name: 'show' })
    t.alike(messages, PLAN.messages.show, `${where}: contents of a prompt, by its bare name`)

    const argument = { name: 'name', value: 'nn' }
    for (const ref of [
      { type: 'ref/prompt' as const, name: `${prefix}greet` },
      { type: 'ref/resource' as const, uri: template }
    ])
      t.alike(
        (await client.complete({ ref, argument })).completion.values,
        ['anna', 'hanna'],
        `${where}: completion of ${ref.type}`
      )

    t.ok(client.getInstructions()?.includes('- demo@a: Read notes before you write one.\n'), `${where}: instructions`)
    const uri = 'a2a://instructions/demo%40a'
    const text = { uri, mimeType: 'text/plain', text: PLAN.instructions }
    t.alike((await client.readResource({ uri })).contents, [text], `${where}: whole instructions`)
  }
})

test('changed lists and subscribed resources of an imported server are reported here and one hop away, and no other change is', async (t: Assert) => {
  const { clients, replan } = await scene(t)
  const heard = clients.map(({ client }) => {
    const notes: string[] = []
    client.setNotificationHandler('notifications/resources/updated', ({ params }) => void notes.push(params.uri))
    client.setNotificationHandler('notifications/resources/list_changed', () => void notes.push('resources'))
    client.setNotificationHandler('notifications/prompts/list_changed', () => void notes.push('prompts'))
    return notes
  })
  const one = 'a2a://resources/demo%40a/notes://one'
  for (const { where, client } of clients) {
    await client.subscribeResource({ uri: one })
    await client.subscribeResource({ uri: 'notes://picture' })
    await t.exception(client.subscribeResource({ uri: `${one}/none` }), /does not report changes/, where)
  }
  const changed = { ...PLAN, contents: { ...PLAN.contents, 'notes://one': [{ ...NOTE, text: 'changed' }] } }
  replan(changed)
  for (const [at, { where, client }] of clients.entries()) {
    await untilTrue(() => Promise.resolve(heard[at]?.includes(one) ?? false), `${where}: the update is reported`)
    t.alike(heard[at], [one], `${where}: once, and nothing else`)
    t.alike((await client.readResource({ uri: one })).contents, [{ ...NOTE, uri: one, text: 'changed' }])
    await client.unsubscribeResource({ uri: one })
  }
  replan({ ...changed, resources: PLAN.resources.slice(1), prompts: PLAN.prompts.slice(1) })
  for (const [at, { where, client, prefix }] of clients.entries()) {
    const isNoted = (): Promise<boolean> =>
      Promise.resolve(['resources', 'prompts'].every((note) => heard[at]?.includes(note) ?? false))
    await untilTrue(isNoted, `${where}: the changed lists are reported`)
    t.alike([...(heard[at] ?? [])].sort(), [one, 'prompts', 'resources'], `${where}: each once`)
    t.alike(
      (await ofServer(client)).map(({ name }) => name),
      ['picture', 'odd'],
      `${where}: the new list`
    )
    t.absent((await client.listPrompts()).prompts.some(({ name }) => name === `${prefix}greet`))
  }
})

test('a client of the newer protocol listens to resources of an imported server here and one hop away', async (t: Assert) => {
  const { clients, replan } = await scene(t, { versionNegotiation: { mode: 'auto' } })
  const heard = await Promise.all(
    clients.map(async ({ where, client }) => {
      const notes: string[] = []
      t.is(client.getProtocolEra(), 'modern', where)
      client.setNotificationHandler('notifications/resources/updated', ({ params }) => void notes.push(params.uri))
      await client.listen({ resourceSubscriptions: ['notes://one'] })
      return { where, notes }
    })
  )
  let version = 0
  for (const { where, notes } of heard) {
    // The first question for a resource begins to follow it: changes before it are not seen.
    await untilTrue(() => {
      const text = `version ${++version}`
      replan({ ...PLAN, contents: { ...PLAN.contents, 'notes://one': [{ ...NOTE, text }] } })
      return Promise.resolve(notes.length > 0)
    }, `${where}: a change is reported`)
    t.alike([...new Set(notes)], ['notes://one'], `${where}: by the URI that the client gave`)
  }
})
