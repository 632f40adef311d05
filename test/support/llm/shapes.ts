/** A call of a tool as a model says it; `pieces`: its arguments as they come. */
export interface ShapedCall {
  readonly name: string
  readonly pieces: readonly string[]
}

/** A refusal as a server gives it. */
export interface Refusal {
  readonly status: number
  readonly body: string
}

/** How one kind of server writes its answers: lines of `data:`, as its public documentation and issues show them. */
export interface ServerShape {
  readonly name: string
  text(pieces: readonly string[]): readonly string[]
  calls(calls: readonly ShapedCall[]): readonly string[]
  /** Text that ends for another reason. */
  ended(piece: string, reason: string): readonly string[]
  usage(input: number, output: number): string
  readonly refusals: Readonly<Record<'unknownModel' | 'badKey' | 'other', Refusal>>
}

const MODEL = 'qwen3:8b'

type Chunk = (delta: unknown, finish?: string) => string

function chunksOf(
  chunk: Chunk,
  first: unknown,
  deltas: readonly unknown[],
  end: readonly [unknown, string]
): readonly string[] {
  return [chunk(first), ...deltas.map((delta) => chunk(delta)), chunk(...end)]
}

/**
 * llama.cpp's `llama-server`: `choices` first, `content: null` at the start, an empty delta at the end, `timings`
 * beside `usage`.
 */
const llamaChunk: Chunk = (delta, finish) =>
  JSON.stringify({
    choices: [{ finish_reason: finish ?? null, index: 0, delta }],
    created: 1_781_492_230,
    id: 'chatcmpl-qC6laQHbZ2CmxNvJ4NoB1L93LcVF7nfe',
    model: `${MODEL}.gguf`,
    system_fingerprint: 'b9554-d403f00ec',
    object: 'chat.completion.chunk'
  })

const LLAMA_FIRST = { role: 'assistant', content: null }

/** llama.cpp streams arguments piece by piece; a model that thinks says so as `reasoning_content`. */
export const LLAMA_CPP: ServerShape = {
  name: 'llama.cpp',
  text: (pieces) =>
    chunksOf(
      llamaChunk,
      LLAMA_FIRST,
      [{ reasoning_content: 'Hm.' }, ...pieces.map((content) => ({ content }))],
      [{}, 'stop']
    ),
  calls: (calls) =>
    chunksOf(
      llamaChunk,
      LLAMA_FIRST,
      calls.flatMap(({ name, pieces: [head = '', ...rest] }, index) => [
        { tool_calls: [{ index, id: `R6bqYZ${index}`, type: 'function', function: { name, arguments: head } }] },
        ...rest.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] }))
      ]),
      [{}, 'tool_calls']
    ),
  ended: (content, reason) => chunksOf(llamaChunk, LLAMA_FIRST, [{ content }], [{}, reason]),
  usage: (input, output) =>
    JSON.stringify({
      choices: [],
      created: 1_781_492_230,
      id: 'chatcmpl-qC6laQHbZ2CmxNvJ4NoB1L93LcVF7nfe',
      model: `${MODEL}.gguf`,
      system_fingerprint: 'b9554-d403f00ec',
      object: 'chat.completion.chunk',
      usage: {
        completion_tokens: output,
        prompt_tokens: input,
        total_tokens: input + output,
        prompt_tokens_details: { cached_tokens: 0 }
      },
      timings: {
        cache_n: 7,
        prompt_n: input,
        prompt_ms: 251.51,
        predicted_n: output,
        predicted_ms: 407.596,
        predicted_per_second: 68.7
      }
    }),
  refusals: {
    unknownModel: {
      status: 400,
      body: '{"error":{"code":400,"message":"model not found","type":"invalid_request_error"}}'
    },
    badKey: { status: 401, body: '{"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}}' },
    other: {
      status: 400,
      body: '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}'
    }
  }
}

const ollamaChunk: Chunk = (delta, finish) =>
  JSON.stringify({
    id: 'chatcmpl-140',
    object: 'chat.completion.chunk',
    created: 1_768_062_791,
    model: MODEL,
    system_fingerprint: 'fp_ollama',
    choices: [{ index: 0, delta, finish_reason: finish ?? null }]
  })

const OLLAMA_FIRST = { role: 'assistant', content: '', reasoning: 'Okay' }
const OLLAMA_LAST = { role: 'assistant', content: '' }

/** Ollama gives a call whole in one chunk, each delta has its role, and what a model thinks is `reasoning`. */
export const OLLAMA: ServerShape = {
  name: 'Ollama',
  text: (pieces) =>
    chunksOf(
      ollamaChunk,
      OLLAMA_FIRST,
      pieces.map((content) => ({ role: 'assistant', content })),
      [OLLAMA_LAST, 'stop']
    ),
  calls: (calls) => {
    const toolCalls = calls.map(({ name, pieces }, index) => ({
      id: `call_lbcjwr${index}`,
      index,
      type: 'function',
      function: { name, arguments: pieces.join('') }
    }))
    return chunksOf(
      ollamaChunk,
      OLLAMA_FIRST,
      [{ role: 'assistant', content: '', tool_calls: toolCalls }],
      [OLLAMA_LAST, 'tool_calls']
    )
  },
  ended: (content, reason) =>
    chunksOf(ollamaChunk, OLLAMA_FIRST, [{ role: 'assistant', content }], [OLLAMA_LAST, reason]),
  usage: (input, output) =>
    JSON.stringify({
      id: 'chatcmpl-140',
      object: 'chat.completion.chunk',
      created: 1_768_062_791,
      model: MODEL,
      system_fingerprint: 'fp_ollama',
      choices: [],
      usage: { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
    }),
  refusals: {
    unknownModel: {
      status: 404,
      body: '{"error":{"message":"model \\"qwen3:8b\\" not found, try pulling it first","type":"api_error","param":null,"code":null}}\n'
    },
    badKey: { status: 401, body: '{"error":"unauthorized"}' },
    other: {
      status: 400,
      body: '{"error":{"message":"registry.ollama.ai/library/tinyllama:latest does not support tools","type":"api_error","param":null,"code":null}}\n'
    }
  }
}

const vllmChunk: Chunk = (delta, finish) =>
  JSON.stringify({
    id: 'chatcmpl-cb1efbea88d44f1ca0da701ac2139e53',
    object: 'chat.completion.chunk',
    created: 1_763_738_578,
    model: MODEL,
    choices: [
      {
        index: 0,
        delta,
        logprobs: null,
        finish_reason: finish ?? null,
        ...(finish === undefined ? {} : { stop_reason: null })
      }
    ]
  })

const VLLM_FIRST = { role: 'assistant', content: '' }

/**
 * vLLM names a tool first and streams its arguments after that; errors stand at the top, newer versions put them into
 * `error`.
 */
export const VLLM: ServerShape = {
  name: 'vLLM',
  text: (pieces) =>
    chunksOf(
      vllmChunk,
      VLLM_FIRST,
      pieces.map((content) => ({ content })),
      [{ content: '' }, 'stop']
    ),
  calls: (calls) =>
    chunksOf(
      vllmChunk,
      VLLM_FIRST,
      calls.flatMap(({ name, pieces }, index) => [
        {
          tool_calls: [
            { id: `chatcmpl-tool-9c8e90c7e0bd46b1bc0e0581480a634${index}`, type: 'function', index, function: { name } }
          ]
        },
        ...pieces.map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] }))
      ]),
      [{ content: '' }, 'tool_calls']
    ),
  ended: (content, reason) => chunksOf(vllmChunk, VLLM_FIRST, [{ content }], [{ content: '' }, reason]),
  usage: (input, output) =>
    JSON.stringify({
      id: 'chatcmpl-cb1efbea88d44f1ca0da701ac2139e53',
      object: 'chat.completion.chunk',
      created: 1_763_738_578,
      model: MODEL,
      choices: [],
      usage: { prompt_tokens: input, total_tokens: input + output, completion_tokens: output }
    }),
  refusals: {
    unknownModel: {
      status: 404,
      body: '{"object":"error","message":"The model `qwen3:8b` does not exist.","type":"NotFoundError","param":null,"code":404}'
    },
    badKey: { status: 401, body: '{"error":"Unauthorized"}' },
    other: {
      status: 400,
      body: '{"error":{"message":"\\"auto\\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set","type":"BadRequestError","param":null,"code":400}}'
    }
  }
}

/** All of them. */
export const SHAPES: readonly ServerShape[] = [LLAMA_CPP, OLLAMA, VLLM]

/** Lines of `data:` as a stream of events, with its end. */
export function eventsOf(chunks: readonly string[]): string {
  return `${[...chunks, '[DONE]'].map((chunk) => `data: ${chunk}`).join('\n\n')}\n\n`
}
