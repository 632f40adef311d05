import { A2A_NULLS, NullFreeEvents, withoutNullsText } from '../../../kit/schema/nulls.js'
import { deniedFault } from './remote-fault.js'
import type { GuardedFetch } from '../net/ssrf-fetch.js'

/**
 * A `fetch` for the client library, which fails on `"error": null`: members that are null are left out of all answers.
 * 401 and 403 are faults, whatever their body.
 */
export function nullFreeFetch(send: GuardedFetch): GuardedFetch {
  return async (input, init) => {
    const response = await send(input, init)
    const { body, status, statusText, headers } = response
    if (status === 401 || status === 403) {
      await body?.cancel().catch(() => {})
      throw deniedFault(status)
    }
    if (body === null) return response
    const isStream = headers.get('content-type')?.includes('text/event-stream') === true
    const head = new Headers(headers)
    head.delete('content-length')
    return new Response(isStream ? body.pipeThrough(events()) : withoutNullsText(await response.text(), A2A_NULLS), {
      status,
      statusText,
      headers: head
    })
  }
}

function events(): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder, lines] = [new TextDecoder(), new TextEncoder(), new NullFreeEvents(A2A_NULLS)]
  return new TransformStream({
    transform: (chunk, controller) =>
      controller.enqueue(encoder.encode(lines.push(decoder.decode(chunk, { stream: true })))),
    flush: (controller) => controller.enqueue(encoder.encode(lines.end()))
  })
}
