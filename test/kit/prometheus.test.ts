import test from 'brittle'
import fc from 'fast-check'
import { prometheusText } from '../../src/kit/prometheus.js'
import { holds } from '../support/holds.js'

test('counters and timings stand in the text exposition format', (t) => {
  const text = prometheusText(
    {
      counters: [
        { name: 'messages_sent', label: null, value: 3 },
        { name: 'messages_refused', label: 'TIER_VIOLATION', value: 1 },
        { name: 'messages_refused', label: 'a "quoted"\\\nlabel', value: 2 }
      ],
      timings: [{ name: 'task_ms', count: 2, sumMs: 30.5, maxMs: 20 }]
    },
    'a2a_node'
  )
  t.alike(text.split('\n'), [
    '# TYPE a2a_node_messages_sent_total counter',
    'a2a_node_messages_sent_total 3',
    '# TYPE a2a_node_messages_refused_total counter',
    'a2a_node_messages_refused_total{kind="TIER_VIOLATION"} 1',
    'a2a_node_messages_refused_total{kind="a \\"quoted\\"\\\\\\nlabel"} 2',
    '# TYPE a2a_node_task_ms summary',
    'a2a_node_task_ms_sum 30.5',
    'a2a_node_task_ms_count 2',
    '# TYPE a2a_node_task_ms_max gauge',
    'a2a_node_task_ms_max 20',
    ''
  ])
})

test('no metrics give no text', (t) => {
  t.is(prometheusText({ counters: [], timings: [] }, 'a2a_node'), '')
})

test('whatever names and labels are, every line is one of the format', async (t) => {
  const line =
    /^(# TYPE [a-zA-Z_:][a-zA-Z0-9_:]* (counter|summary|gauge)|[a-zA-Z_:][a-zA-Z0-9_:]*(\{kind="(?:[^"\\\n]|\\[\\n"])*"\})? \S+)$/
  const counter = fc.record({ name: fc.string(), label: fc.option(fc.string({ unit: 'binary' })), value: fc.nat() })
  await holds(
    t,
    fc.property(fc.array(counter), (counters) => {
      const lines = prometheusText({ counters, timings: [] }, 'a2a_node').split('\n').slice(0, -1)
      return lines.every((one) => line.test(one))
    })
  )
})
