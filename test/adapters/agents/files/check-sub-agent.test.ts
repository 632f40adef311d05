import fs from 'node:fs/promises'
import path from 'node:path'
import test from 'brittle'
import { asSubAgent, checkAgentFile } from '../../../../src/adapters/agents/files/check-file.js'
import { readAgentFile } from '../../../../src/adapters/agents/files/read-agent-file.js'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { agentText } from '../../../support/agents/agent-text.js'
import { tempDir } from '../../../support/tmp.js'

const EXAMPLES =
  `Use this agent for reviews. Examples: <example>Context: new code. user: "check: it" assistant: "I'll use
  it: now" <commentary>it's #1, 100% - [x] {y}</commentary></example>`.replaceAll('\n  ', ' ')
const LONG = `Use it. ${'<example>user: "one" assistant: "two: three"</example> '.repeat(100)}`.trim()

function reviewer(description: string): string {
  return `---\nname: reviewer\ndescription: ${description}\ntools: Read, Grep\nmodel: opus\ncolor: red\n---\n\nReview.\n`
}

/** A sub-agent file in the forms that editors and systems write, with its description. */
const FORMS: Readonly<Record<string, [string, string]>> = {
  plain: [reviewer(EXAMPLES), EXAMPLES],
  CRLF: [reviewer(EXAMPLES).replaceAll('\n', '\r\n'), EXAMPLES],
  'byte order mark': [`\uFEFF${reviewer(EXAMPLES)}`, EXAMPLES],
  'byte order mark and CRLF': [`\uFEFF${reviewer(EXAMPLES)}`.replaceAll('\n', '\r\n'), EXAMPLES],
  tabs: [reviewer('Reviews.').replaceAll(': ', ':\t'), 'Reviews.'],
  'tabs after values': [reviewer('Reviews.').replaceAll('\n', '\t\n').replace('---\t', '---'), 'Reviews.'],
  'a long description': [reviewer(LONG), LONG],
  'a block of lines': [
    reviewer(`|\n  First: one.\n\n  <example>\n  user: "x"\n  </example>`),
    'First: one.\n\n<example>\nuser: "x"\n</example>\n'
  ],
  'escaped lines': [reviewer(JSON.stringify('One.\\n\\nTwo: three.')), 'One.\\n\\nTwo: three.']
}

test('a sub-agent file in any form has no fault and the commands that import it, and its description is whole', async (t) => {
  const dir = await tempDir(t)
  for (const [form, [text, description]] of Object.entries(FORMS)) {
    const file = path.join(dir, 'reviewer.md')
    await fs.writeFile(file, text)
    t.alike(
      await asSubAgent(await checkAgentFile(file)),
      {
        ok: true,
        file,
        id: 'reviewer',
        capabilities: [],
        ignored: [],
        faults: [],
        warnings: [],
        importBy: ['command', 'llm'].map((name) => `a2a-node agents import ${file} --runtime ${name}`)
      },
      form
    )
    const subAgents = { runtime: 'command', model: null, tier: null, command: null } as const
    const read = await readAgentFile(file, createSchemaCompiler(), { subAgents })
    t.ok(read.ok, form)
    t.is(read.ok ? read.definition.description : '', description, form)
  }
})

test('an agent file with a faulty block, and a text without front matter, keep their faults', async (t) => {
  const dir = await tempDir(t)
  for (const text of [agentText('ant', ['  tier: L9']), 'no front matter', '---\nname: cut\n']) {
    const file = path.join(dir, 'ant.md')
    await fs.writeFile(file, text)
    const report = await checkAgentFile(file)
    t.is(report.ok, false)
    t.alike(await asSubAgent(report), report)
  }
})
