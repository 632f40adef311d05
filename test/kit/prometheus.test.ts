import test, { type Assert } from 'brittle'
import fc from 'fast-check'
import { prometheusLines } from '../../src/kit/prometheus.js'
import type { MetricsSnapshot } from '../../src/ports/telemetry.js'
import { holds } from '../support/holds.js'
import { parsePrometheus } from '../support/prometheus.js'

test('counters and times have HELP and TYPE', (t: Assert) => {
  const lines = prometheusLines({
    counters: [
      { name: 'messages_sent', label: 'request', value: 3 },
      { name: 'messages_sent', label: 'error', value: 1 },
      { name: 'links_opened', label: null, value: 2 }
    ],
    timings: [{ name: 'routing_ms', count: 2, sumMs: 1.5, maxMs: 1 }]
  })
  t.alike(lines.slice(0, 4), [
    '# HELP a2a_node_messages_sent_total Messages handed to a channel or to an agent of this node, by type.',
    '# TYPE a2a_node_messages_sent_total counter',
    'a2a_node_messages_sent_total{label="request"} 3',
    'a2a_node_messages_sent_total{label="error"} 1'
  ])
  const { samples, types } = parsePrometheus(lines.join('\n'))
  t.alike(types.get('a2a_node_routing_seconds'), 'summary')
  t.is(samples.get('a2a_node_routing_seconds_sum'), 0.0015)
  t.is(samples.get('a2a_node_routing_seconds_count'), 2)
  t.is(samples.get('a2a_node_routing_seconds_max'), 0.001)
  t.is(samples.get('a2a_node_links_opened_total'), 2)
})

test('the text gives back the counted values, for any label', async (t: Assert) => {
  const counter = fc.record({
    name: fc.constantFrom('messages_refused', 'errors', 'of_another_version'),
    label: fc.option(fc.string({ unit: 'binary', maxLength: 20 })),
    value: fc.nat()
  })
  const counters = fc.uniqueArray(counter, {
    selector: ({ name, label }) => JSON.stringify([name, label]),
    maxLength: 20
  })
  const property = fc.property(counters, (list) => {
    const byName = [...list].sort((a, b) => (a.name < b.name ? -1 : 1))
    const snapshot: MetricsSnapshot = { counters: byName, timings: [] }
    const { samples } = parsePrometheus(prometheusLines(snapshot).join('\n'))
    return (
      samples.size === list.length &&
      list.every(({ name, label, value }) => {
        const metric = `a2a_node_${name}_total`
        return samples.get(label === null ? metric : `${metric}{label=${JSON.stringify(label)}}`) === value
      })
    )
  })
  await holds(t, property, 300)
})
