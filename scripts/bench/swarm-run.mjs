/** Runs a swarm to its end and gives its `done` line. Fails when it did not complete. */
export async function runSwarm(node, request) {
  const { id } = await node.api.call('swarm.start', request)
  for await (const event of node.api.watch('swarm.watch', { id })) {
    if (event.type !== 'done') continue
    if (event.status === 'completed') return event
    throw new Error(
      `the swarm "${request.goal}" ended ${event.status}: ${JSON.stringify(event.counts)} ${JSON.stringify(event.error)}`
    )
  }
  throw new Error(`the swarm "${request.goal}" never ended`)
}
