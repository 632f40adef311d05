import test, { type Assert } from 'brittle'
import { toolOfEdges } from '../../../../src/adapters/mcp/server/oversized-call.js'

/** The tool that the first and the last 512 bytes of a text show. */
function toolOf(text: string): string | null {
  return toolOfEdges({ head: Buffer.from(text.slice(0, 512)), tail: Buffer.from(text.slice(-512)) })
}

test('a long message is a call of a tool only when its outermost object says so', (t: Assert) => {
  const pad = 'x'.repeat(2000)
  const inner = '"method":"tools/call"'
  t.is(toolOf(`{"jsonrpc":"2.0","id":1,${inner},"params":{"name":"ä","arguments":{"a":"${pad}"}}}`), 'ä')
  t.is(toolOf(`{${inner} , "params" : { "name" : "n" , "arguments":{"a":"${pad}"}},"id":"x"}`), 'n')
  t.is(toolOf(`{"params":{"arguments":{"a":"${pad}"},"name":"n"},"id":1,${inner}}`), '', 'the name is not shown')
  t.is(toolOf(`{"id":1,"method":"x","params":{${inner},"a":"${pad}"}}`), null, 'a method inside the params')
  t.is(toolOf(`{"id":1,"method":"x","params":{"a":"${pad}",${inner}}}`), null, 'the same at the end')
  t.is(toolOf(`{"id":1,"method":"prompts/get","params":{"name":"tools/call","a":"${pad}"}}`), null)
  t.is(toolOf(pad), null)
})
