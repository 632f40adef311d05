/** An agent whose run lasts until it is told to go on or killed; its processes carry a mark in their arguments. */
export function slowAgent(mark: string, ms: number): string {
  return `---
name: worker
description: Takes its time.
a2a:
  version: 0.1.0
  capabilities:
    - id: work.slowly
      description: Waits and says who did it
      input: { type: object }
      idempotent: true
  runtime: { type: command, command: [node, -e, "setTimeout(() => console.log(JSON.stringify({pid: process.pid})), ${ms})", "${mark}", "{input.item}"] }
  limits: { timeout: 1m, concurrency: 2 }
---
`
}

/** An agent file: `job.<what>` answers what the expression makes of `input`, `attempt` and `env`. */
export function job(what: string, expression: string, ms = 0): string {
  const program = `let s='';process.stdin.on('data',d=>s+=d).on('end',()=>{const {input,attempt}=JSON.parse(s);const r=(${expression});setTimeout(()=>console.log(JSON.stringify(r)),${ms})})`
  return `---
name: ${what}
description: Does ${what}.
a2a:
  version: 0.1.0
  capabilities:
    - id: job.${what}
      description: ${what}
      input: { type: object }
      idempotent: true
  runtime: { type: command, command: [node, -e, ${JSON.stringify(program)}] }
  limits: { timeout: 1m, concurrency: 4 }
---
`
}
