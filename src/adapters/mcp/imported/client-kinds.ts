import type { ClientCapabilities } from '@modelcontextprotocol/server'
import { QUESTION_KINDS, type QuestionKind } from '../../../domain/task/question.js'

/** Kinds of questions of declared capabilities. */
export function kindsOf({ elicitation, sampling, roots }: ClientCapabilities = {}): readonly QuestionKind[] {
  // Declared without modes it means forms, as before there were others.
  const isForm = elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
  const has: Readonly<Record<QuestionKind, boolean>> = {
    form: isForm,
    url: elicitation?.url !== undefined,
    sampling: sampling !== undefined,
    tools: sampling?.tools !== undefined,
    roots: roots !== undefined
  }
  return QUESTION_KINDS.filter((kind) => has[kind])
}
