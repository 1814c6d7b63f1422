internal import ArgumentParser
internal import TidemarkEngine

/// Deletes keys.
struct DeleteCommand: ToolCommand {
  private static let listBytes = 256 << 20

  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Delete keys; changes the store.",
    discussion: """
      Examples:
        logtool delete S note/1
        logtool scan S --label expired --keys -0 | logtool delete S --keys-from - -0

      All keys go in one atomic batch. Exit status 1 when none of them was there.
      """)

  @OptionGroup var global: GlobalOptions
  @OptionGroup var keys: KeyOptions
  @OptionGroup var write: WriteOptions

  @Argument(help: "The store's directory.", completion: .directory)
  var store: String

  @Argument(help: "The keys.")
  var key: [String] = []

  @Option(
    name: .customLong("keys-from"), help: "A file with keys, one a line; - is standard input.")
  var keysFrom: String?

  @Flag(
    name: [.customShort("0"), .customLong("null")],
    help: "The keys of the file end with NUL bytes, not with lines.")
  var endsWithNUL = false

  @Flag(name: .customLong("dry-run"), help: "Only say which of the keys are there.")
  var isDryRun = false

  func validate() throws {
    if key.isEmpty, keysFrom == nil { throw ValidationError("give a key, or --keys-from FILE") }
  }

  func run(_ console: Console) throws {
    var batch = OperationBatch()
    for key in try wanted(console) { try batch.add(.delete, key: key.rawSpan) }
    let access = StoreAccess(store, console)
    if isDryRun { return try tellPresent(batch, access) }
    let result = try write.commit(batch, to: access, saying: "deleted")
    guard result.applied > 0 else {
      throw ToolError(.failed, "nothing was deleted: the key is not in the store")
    }
  }

  private func wanted(_ console: Console) throws(ToolError) -> [[UInt8]] {
    var result: [[UInt8]] = []
    for text in key { result.append(try keys.key(text)) }
    guard let keysFrom else { return result }
    let input = keysFrom == "-" ? try console.input() : try InputStream.open(keysFrom)
    let bytes = try input.readAll(atMost: Self.listBytes)
    for line in bytes.split(separator: endsWithNUL ? 0 : UInt8(ascii: "\n")) {
      if keys.isBase64 {
        result.append(try keys.key(String(decoding: line, as: UTF8.self)))
      } else {
        guard line.count <= Limits.keyBytes else {
          throw ToolError(
            .usage,
            "a key of \(input.name) has \(line.count) bytes; keys have 1 to "
              + "\(Limits.keyBytes) bytes")
        }
        result.append(Array(line))
      }
    }
    return result
  }

  private func tellPresent(_ batch: OperationBatch, _ access: StoreAccess) throws {
    let printer = EntryPrinter(console: access.console, keys: keys.style)
    var list = try ListPrinter(access.console, "entries", empty: "none of the keys is there")
    try access.read { engine in
      for operation in batch.operations {
        let key = [UInt8](copying: batch.key(of: operation))
        guard try engine.contains(key.rawSpan) else { continue }
        try list.add {
          .object([.bytes("key", key)])
        } text: { () throws(ToolError) in
          try printer.appendKey(key)
        }
      }
    }
    try list.end()
  }
}
