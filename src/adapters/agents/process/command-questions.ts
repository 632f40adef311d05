import type { Writable } from 'node:stream'
import { MAX_QUESTIONS, type QuestionAnswer } from '../../../domain/task/question.js'
import type { RunCaller } from '../../../ports/agent-runtime.js'

/** Longest id of a question, in characters: the answer repeats it. */
const MAX_ID = 128

/**
 * Questions of one program to the person at its caller. Each gets one line of JSON on the program's stdin: `{"type":
 * "answer", "id", "content"}`, null for a declined one, or `{"type": "answer", "id", "error"}`. A question beyond
 * {@link MAX_QUESTIONS} ends stdin after the answers.
 */
export class CommandQuestions {
  readonly #caller: RunCaller | undefined
  readonly #stdin: Writable
  #count = 0
  #open = 0

  constructor(caller: RunCaller | undefined, stdin: Writable) {
    this.#caller = caller
    this.#stdin = stdin
  }

  /** A line of the program. One without a usable id is skipped. */
  ask({ id, message, schema }: Readonly<Record<string, unknown>>): void {
    if (typeof id !== 'number' && (typeof id !== 'string' || id.length > MAX_ID)) return
    if (++this.#count > MAX_QUESTIONS) return this.#endWhenAnswered()
    this.#open++
    void this.#answerTo({ mode: 'form', message, requestedSchema: schema }).then((answer) => {
      this.#stdin.write(`${JSON.stringify({ type: 'answer', id, ...membersOf(answer) })}\n`)
      this.#open--
      this.#endWhenAnswered()
    })
  }

  #endWhenAnswered(): void {
    if (this.#count > MAX_QUESTIONS && this.#open === 0) this.#stdin.end()
  }

  async #answerTo(params: Readonly<Record<string, unknown>>): Promise<QuestionAnswer> {
    const answer = await this.#caller?.ask({ method: 'elicitation/create', params })
    return answer ?? { ok: false, message: 'the caller of this task answers no questions' }
  }
}

function membersOf(answer: QuestionAnswer): { readonly error: string } | { readonly content: unknown } {
  if (!answer.ok) return { error: answer.message }
  const { action, content = {} } = answer.result
  return { content: action === 'accept' ? content : null }
}
