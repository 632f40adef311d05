import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { PublishedNames, publishedName } from '../../../../src/adapters/mcp/tools/published-names.js'
import { ToolCatalog } from '../../../../src/adapters/mcp/server/tool-catalog.js'
import { ToolRegistry } from '../../../../src/adapters/mcp/server/tool-registry.js'
import { createSchemaCompiler } from '../../../../src/adapters/agents/schemas/compile-schema.js'
import { holds } from '../../../support/holds.js'
import { ANYTHING } from '../../../support/mcp.js'

test('names are published as the protocol decisions say', (t: Assert) => {
  t.is(publishedName('text.stats'), 'text__stats')
  t.is(publishedName('text@gpu-box.stats'), 'text_at_gpu-box__stats')
  t.is(publishedName('admin/registerTool'), 'admin__registerTool')
  t.is(publishedName('a b:ü😀'), 'a_b___')
  t.is(publishedName('x'.repeat(49)), 'x'.repeat(49))
  t.ok(/^x{41}_[A-Za-z0-9_-]{7}$/.test(publishedName('x'.repeat(50))))
})

test('the published name of an imported tool has its server once', (t: Assert) => {
  t.is(publishedName('mcp_files_read'), 'files__read')
  t.is(publishedName('mcp_git_git_log'), 'git__git_log')
  t.is(publishedName('git@beta.mcp_git_git_log'), 'git_at_beta__git_log')
  t.is(publishedName('my_git@beta.mcp_my-git_log'), 'my_git_at_beta__log')
  t.is(publishedName('text@beta.mcp_git_log'), 'text_at_beta__mcp_git_log', 'not a tool of that server')
  t.is(publishedName('mcp_client'), 'mcp_client')
})

test('a long published name keeps the end that says what the tool does', (t: Assert) => {
  const name = publishedName('documentation@workstation-in-the-laboratory.resolve_library')
  t.ok(/^documentation_at_worksta__resolve_library_[A-Za-z0-9_-]{7}$/.test(name), name)
  t.is(name.length, 49)
})

/** Names that look alike once they are published. */
const arbName = fc.array(fc.constantFrom('a', 'b', '.', '/', '@', '_', '__', '_at_', 'ü', 'x'.repeat(39)), {
  minLength: 1,
  maxLength: 6
})
const arbNames = fc.uniqueArray(
  arbName.map((parts) => parts.join('')),
  { minLength: 1, maxLength: 20 }
)

test('in any list distinct names stay distinct, fit clients, and lead back, after any additions and removals', async (t: Assert) => {
  const property = fc.property(arbNames, fc.array(fc.nat()), (all, picks) => {
    const names = new PublishedNames()
    for (const name of all) names.add(name)
    const gone = new Set(picks.map((pick) => all[pick % all.length]))
    for (const name of gone) if (!names.delete(name) || names.delete(name) || names.resolve(name) === name) return false
    const left = all.filter((name) => !gone.has(name))
    const published = left.map((name) => names.published(name))
    const isFit = published.every((name) => /^[A-Za-z0-9_-]{1,49}$/.test(name))
    const leadsBack = left.every((name, i) => names.resolve(name) === name && names.resolve(published[i]) === name)
    return isFit && leadsBack && new Set(published).size === left.length
  })
  await holds(t, property, 500)
})

test('tools of two sources whose names would look the same are both listed and each is found', async (t: Assert) => {
  const registries = ['a.b', 'a/b'].map((name) => {
    const registry = new ToolRegistry(createSchemaCompiler())
    registry.register({ name, description: '', inputSchema: ANYTHING }, () => Promise.resolve(name))
    return registry
  })
  const catalog = new ToolCatalog(registries)
  const listed = await catalog.list()
  t.is(new Set(listed.map((one) => one.name)).size, 2)
  for (const { name, definition } of listed) t.is((await catalog.find(name))?.definition.name, definition.name)
  for (const name of ['a.b', 'a/b']) t.is((await catalog.find(name))?.definition.name, name)
  t.is(await catalog.find('a__b'), undefined, 'neither of them')
  registries[1].unregister('a/b')
  t.alike(
    (await catalog.list()).map((one) => one.name),
    ['a__b']
  )
  t.is((await catalog.find('a__b'))?.definition.name, 'a.b')
})
