import { NodeError } from '../../kit/errors.js'
import { shown } from '../../kit/text.js'
import type { DocumentDetail, DocumentRuleRequest } from '../../ports/document-api.js'
import type { NodeApi } from '../../ports/node-api.js'
import type { Action } from '../context.js'
import { accessFacts } from '../document-facts.js'
import { accessRule, EVERYBODY, ruleRequest } from '../document-rule.js'
import { EXIT } from '../exit-codes.js'
import { isSet, textsOption } from '../options.js'
import { printFacts } from '../render.js'

/** `doc access <doc>`: who may see and write a document; with `--see` or `--write` says so anew. */
export const documentAccess: Action = async ({ output, api }, [document = ''], options) => {
  const asked: Asked = {
    see: accessRule(textsOption(options, 'see'), '--see'),
    write: accessRule(textsOption(options, 'write'), '--write')
  }
  const isChange = asked.see !== null || asked.write !== null
  if (isSet(options, 'create') && !isChange) throw new NodeError('USAGE', '--create needs --see or --write')
  const one = isChange ? await change(api(), document, { ...asked, mayCreate: isSet(options, 'create') }) : await show(api(), document)
  const { id, name, access, may } = one
  if (output.json) output.object('doc-access@1', { id, name, access, may, changed: isChange })
  else {
    output.print(`${output.paint('bold', shown(name))}   ${id}`)
    printFacts(output, accessFacts(access))
  }
  return EXIT.ok
}

interface Asked {
  readonly see: DocumentRuleRequest | null
  readonly write: DocumentRuleRequest | null
}

function show(api: NodeApi, document: string): Promise<DocumentDetail> {
  return api.call('documents.show', { document })
}

/** What is not said anew stays as it is. */
async function change(api: NodeApi, document: string, { see, write, mayCreate }: Asked & { mayCreate: boolean }): Promise<DocumentDetail> {
  if (mayCreate) {
    const made = await api.call('documents.create', { name: document, see: see ?? EVERYBODY, write: write ?? EVERYBODY })
    if (made.created) return made
  }
  const { name, access } = await show(api, document)
  return await api.call('documents.restrict', {
    document: name,
    see: see ?? ruleRequest(access?.see),
    write: write ?? ruleRequest(access?.write)
  })
}
