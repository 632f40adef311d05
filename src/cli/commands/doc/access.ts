import { asNodeError, NodeError } from '../../../kit/errors.js'
import { isKeyText } from '../../../kit/ids.js'
import { shown } from '../../../kit/text.js'
import type { DocumentDetail, DocumentRuleRequest } from '../../../ports/document-api.js'
import type { NodeApi } from '../../../ports/node-api.js'
import type { Action } from '../../context.js'
import { accessFacts } from '../../documents/facts.js'
import { accessRule, EVERYBODY, ruleRequest } from '../../documents/rule.js'
import { EXIT } from '../../exit-codes.js'
import { isSet, textsOption } from '../../options.js'
import type { Output } from '../../terminal/output.js'
import { printFacts } from '../../terminal/render.js'

/** `doc access <doc>`: who may see and write a document; with `--see` or `--write` says so anew. */
export const documentAccess: Action = async ({ output, api }, [document = ''], options) => {
  const asked: AccessRequest = {
    see: accessRule(textsOption(options, 'see'), '--see'),
    write: accessRule(textsOption(options, 'write'), '--write')
  }
  const isChange = asked.see !== null || asked.write !== null
  if (isSet(options, 'create') && !isChange) throw new NodeError('USAGE', '--create needs --see or --write')
  const mayCreate = isSet(options, 'create')
  const found = isChange ? change(api(), document, { ...asked, mayCreate }) : show(api(), document)
  const one = await found.catch((error: unknown) => {
    throw isChange ? creatable(error, document, output) : error
  })
  const { id, name, access, may } = one
  if (output.json) output.object('doc-access@1', { id, name, access, may, changed: isChange })
  else {
    output.print(`${output.paint('bold', shown(name))}   ${id}`)
    printFacts(output, accessFacts(access))
  }
  return EXIT.ok
}

/** An id is none that a document could be called by. */
function creatable(thrown: unknown, document: string, output: Output): NodeError {
  const error = asNodeError(thrown)
  const again = output.retyped('--create', '')?.trimEnd()
  if (error.code !== 'DOCUMENT_NOT_FOUND' || isKeyText(document) || again === undefined) return error
  return new NodeError(error.code, error.message, { data: error.data, next: [again, ...error.next], cause: error })
}

interface AccessRequest {
  readonly see: DocumentRuleRequest | null
  readonly write: DocumentRuleRequest | null
}

function show(api: NodeApi, document: string): Promise<DocumentDetail> {
  return api.call('documents.show', { document })
}

/** Omitted rules stay unchanged. */
async function change(
  api: NodeApi,
  document: string,
  { see, write, mayCreate }: AccessRequest & { mayCreate: boolean }
): Promise<DocumentDetail> {
  if (mayCreate) {
    const made = await api.call('documents.create', {
      name: document,
      see: see ?? EVERYBODY,
      write: write ?? EVERYBODY
    })
    if (made.created) return made
  }
  const { name, access } = await show(api, document)
  return await api.call('documents.restrict', {
    document: name,
    see: see ?? ruleRequest(access?.see),
    write: write ?? ruleRequest(access?.write)
  })
}
