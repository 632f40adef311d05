import test from 'brittle'
import { parseDocument } from 'yaml'
import { unresolvedAlias, yamlReason } from '../../src/kit/yaml-reason.js'

test('every error of the yaml package has a reason in plain words', (t) => {
  const texts = [
    'a: [\n',
    'a: 1\na: 2\n',
    'a:\n\t- 1\n',
    'a: "x\n',
    'a: "\\q"\n',
    'a: @x\n',
    '- a\nb: 1\n',
    'a: 1\n---\nb: 2\n',
    'a: b: c\n',
    'a: {b: - 1}\n',
    'a: *\n',
    `${'k'.repeat(1030)}: 1\n`
  ]
  for (const text of texts) {
    const { errors } = parseDocument(text, { prettyErrors: false })
    t.ok(errors.length > 0, text.slice(0, 20))
    for (const { code, message } of errors) t.not(yamlReason(code), message, code)
    t.ok(
      errors.every(({ code }) => yamlReason(code) !== 'the text is not valid YAML'),
      errors.map(({ code }) => code).join()
    )
  }
  t.is(yamlReason('toString'), 'the text is not valid YAML')
})

test('an alias without an anchor is named', (t) => {
  try {
    parseDocument('a: *tasks\n').toJS()
    t.fail('it was resolved')
  } catch (error) {
    t.is(unresolvedAlias((error as Error).message), 'tasks')
  }
  t.is(unresolvedAlias('another fault'), null)
})
