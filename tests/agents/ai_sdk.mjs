// The AI SDK in a tool loop, through the address that it is given.
import { execSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [installed, provider, address, model, system, prompt] = process.argv.slice(2)
const require = createRequire(`${installed}/package.json`)
const load = (name) => import(pathToFileURL(require.resolve(name)))
const { generateText, stepCountIs, tool } = await load('ai')
const { z } = await load('zod')

const makers = {
  openai: async () => (await load('@ai-sdk/openai')).createOpenAI,
  anthropic: async () => (await load('@ai-sdk/anthropic')).createAnthropic,
}
const create = await makers[provider]()
const run = (command) => {
  try {
    return execSync(command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    return `exit ${error.status}: ${error.stderr}`
  }
}
const { text } = await generateText({
  model: create({ baseURL: `${address}/v1`, apiKey: 'test' })(model),
  system,
  prompt,
  maxRetries: 0,
  maxOutputTokens: 4000,
  stopWhen: stepCountIs(100),
  tools: {
    read: tool({
      description: 'Read a file.',
      inputSchema: z.object({ path: z.string() }),
      execute: async ({ path }) => readFileSync(path, 'utf8'),
    }),
    shell: tool({
      description: 'Run a command.',
      inputSchema: z.object({ command: z.string() }),
      execute: async ({ command }) => run(command),
    }),
  },
})
console.log(text)
