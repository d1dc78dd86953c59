// SPDX-License-Identifier: Apache-2.0
// OpenAI's client, unchanged but for baseURL: node run.mjs BASE_URL TOKEN READER. Prints one JSON object of what it saw.
import OpenAI, { toFile } from 'openai';

const [baseURL, apiKey, readKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const seen = {};
const endpoint = '/v1/chat/completions';

function lines(count, model = 'm') {
  return Array.from({ length: count }, (_, i) => JSON.stringify(
    { custom_id: `r ${i}`, method: 'POST', url: endpoint, body: { model, messages: [], i } })).join('\n') + '\n';
}

const upload = async (text) => client.files.create({ file: await toFile(Buffer.from(text), 'in.jsonl'), purpose: 'batch' });
const create = (file, window = '24h') => client.batches.create(
  { input_file_id: file.id, endpoint, completion_window: window, metadata: { team: 'a' } });

async function until(batch, status) {
  for (let i = 0; i < 600; i++) {
    const now = await client.batches.retrieve(batch.id);
    if (now.status === status) return now;
    await new Promise((go) => setTimeout(go, 50));
  }
  throw new Error(`${batch.id} is not ${status}`);
}

const read = async (id) => (await (await client.files.content(id)).text()).trim().split('\n').map((l) => JSON.parse(l));

async function failure(call) {
  try { await call(); return 'none'; } catch (error) { return `${error.constructor.name} ${error.status} ${error.code}`; }
}

// A life: upload, create, poll, download, error lines.
const file = await upload(lines(200));
seen.file = [file.object, file.purpose, (await client.files.retrieve(file.id)).bytes === file.bytes];
const batch = await until(await create(file), 'completed');
seen.counts = batch.request_counts;
seen.metadata = batch.metadata;
const output = await read(batch.output_file_id), errors = await read(batch.error_file_id);
seen.lines = [output.length, errors.length, new Set([...output, ...errors].map((l) => l.custom_id)).size];
seen.answer = output[0].response.body;
seen.error = errors[0].response.status_code;

// A bad file, an expired batch, a cancelled one.
const bad = await until(await create(await upload(lines(1) + 'oops\n')), 'failed');
seen.bad = [bad.errors.data[0].code, bad.errors.data[0].line];
const other = await upload(lines(50, 'idle')); // no worker takes this model
const late = await until(await create(other, '1s'), 'expired');
seen.late = [...new Set((await read(late.error_file_id)).map((l) => l.error.code))];
const running = await until(await create(other), 'in_progress');
await client.batches.cancel(running.id);
const cancelled = await until(running, 'cancelled');
seen.cancelled = [...new Set((await read(cancelled.error_file_id)).map((l) => l.error.code))];

// Lists that page by themselves.
seen.batches = 0;
for await (const one of client.batches.list({ limit: 2 })) seen.batches += one.object === 'batch';
seen.files = 0;
for await (const one of client.files.list({ limit: 1 })) seen.files += one.object === 'file';
seen.models = [];
for await (const one of client.models.list()) seen.models.push(one.id);

// Errors, as the client's classes.
seen.failures = [
  await failure(() => client.batches.retrieve('batch_none')),
  await failure(() => client.files.content('file-none')),
  await failure(() => create(file, 'soon')),
  await failure(() => client.batches.cancel(batch.id)),
  await failure(() => client.files.create({ file: toFile(Buffer.from('x'), 'x'), purpose: 'assistants' })),
];
seen.deleted = (await client.files.delete(file.id)).deleted;
seen.gone = await failure(() => client.files.retrieve(file.id));
// A token that is wrong, and one that may only read.
const wrong = new OpenAI({ baseURL, apiKey: 'wrong', maxRetries: 0 });
const reader = new OpenAI({ baseURL, apiKey: readKey, maxRetries: 0 });
seen.failures.push(await failure(() => wrong.files.list()),
  await failure(() => reader.files.create({ file: toFile(Buffer.from('x'), 'x'), purpose: 'batch' })));
console.log(JSON.stringify(seen));
