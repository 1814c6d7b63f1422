internal import ArgumentParser
internal import Tidemark
internal import TidemarkEngine

/// Brings NDJSON into a store.
struct ImportCommand: ToolCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Bring NDJSON into a store, which is created when there is none.",
    discussion: """
      Examples:
        logtool import S notes.ndjson.zst
        generate-entries | logtool import S -
        logtool import S notes.ndjson --output jsonl  # tells of each batch

      One entry a line: {"op":"put","key":"…","value":"…","labels":["…"],"time":"…","hash":"…"}, \
      {"op":"delete","key":"…"} or {"op":"touch","key":"…"}; key_base64, value_base64, hash_base64 \
      and labels_base64 for what is not text. Every line takes one sequence. Batches of 1000 lines \
      are atomic; a bad line stops the import, and nothing of its batch stays.
      """)

  @OptionGroup var global: GlobalOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(
    help: "Files, compressed with zstd or not; - is standard input.", completion: .file())
  var files: [String] = ["-"]

  @Option(
    help: "The directory with the content of attachments, as export wrote it.",
    completion: .directory)
  var attachments: String?

  @Flag(name: .customLong("skip-bad"), help: "Leave bad lines out, and say which.")
  var skipsBad = false

  @Flag(name: .customLong("dry-run"), help: "Only read and check the files.")
  var isDryRun = false

  func run(_ console: Console) throws {
    // Nothing is created for a file that cannot be read.
    var inputs: [InputStream] = []
    for file in files {
      inputs.append(file == "-" ? try console.input() : try InputStream.open(file))
    }
    console.stopGracefully()
    let started = console.clock.monotonicNanoseconds()
    var importer = Importer(console, skipsBad: skipsBad, attachments: attachments)
    defer {
      importer.warnOfUnknownFields()
      importer.warnOfAttachments()
    }
    var sequence: UInt64?
    var keys: Int?
    if isDryRun {
      try run(inputs, &importer, into: nil)
    } else {
      try StoreAccess(store, console).write(creates: true) { store in
        defer {
          sequence = store.lastSequence
          keys = try? store.count()
        }
        try run(inputs, &importer, into: store)
        try store.blocking.flush()
      }
    }
    let nanoseconds = console.clock.monotonicNanoseconds() &- started
    try summarize(
      importer, seconds: Double(nanoseconds) / 1e9, sequence: sequence, keys: keys, console)
    if importer.isInterrupted { throw ToolError.silent(.interrupted) }
  }

  private func run(
    _ inputs: [InputStream], _ importer: inout Importer, into store: Store?
  ) throws {
    for input in inputs where !importer.isInterrupted {
      try importer.run(input, into: store)
    }
  }

  private func summarize(
    _ importer: Importer, seconds: Double, sequence: UInt64?, keys: Int?, _ console: Console
  ) throws(ToolError) {
    let format = console.settings.format
    if format == .json || format == .jsonl && isDryRun {
      let members: [JSONValue.Member] = [
        .init("committed", .integer(isDryRun ? 0 : importer.committed)),
        .init("read", .integer(importer.committed + importer.skipped)),
        .init("skipped", .integer(importer.skipped)),
        .init("sequence", sequence.map { .unsigned($0) } ?? .null),
        .init("keys", keys.map { .integer($0) } ?? .null),
      ]
      try console.output.line(.object(members))
    } else if format == .jsonl, importer.committed == 0 {
      try console.output.line("{\"committed\":0}")
    }
    let rate = Int(Double(importer.committed) / max(seconds, 0.001))
    var text = importer.isInterrupted ? "interrupted; " : ""
    text += isDryRun ? "would import " : "imported "
    text += HumanText.count(importer.committed, "entry", "entries")
    text += " in \(HumanText.duration(seconds: seconds)) (\(HumanText.count(rate)) a second)"
    if importer.skipped > 0 {
      text += "; \(HumanText.count(importer.skipped, "bad line", "bad lines")) left out"
    }
    if let sequence, let keys {
      text += "; the store has \(HumanText.count(keys, "key", "keys")) at sequence \(sequence)"
    }
    console.say(text)
  }
}
