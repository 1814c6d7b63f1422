internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Commits the batches of any number of files, and keeps account.
struct Importer {
  /// So many bad lines are told one by one.
  private static let toldLines = 20

  private let console: Console
  private let skipsBad: Bool
  /// Entries committed so far.
  private(set) var committed = 0
  /// Lines left out so far.
  private(set) var skipped = 0
  private(set) var bytes = 0
  private(set) var isInterrupted = false
  private var unknown = UnknownFields()
  private var attachments: AttachmentImport
  /// Whether anybody still listens to what is said after each batch.
  private var hasListener: Bool

  /// - Parameter attachments: the directory with the content of attachments; nil for none.
  init(_ console: Console, skipsBad: Bool, attachments: String? = nil) {
    self.attachments = AttachmentImport(console, attachments)
    self.console = console
    self.skipsBad = skipsBad
    hasListener = console.settings.format == .jsonl
  }

  /// Imports one file.
  /// - Parameter store: where to; nil only reads and checks.
  /// - Throws: what is wrong with the file or the store; the batches before it stay.
  mutating func run(_ input: InputStream, into store: Store?) throws {
    let pipeline = try DecodePipeline(
      input, skipsBad: skipsBad, isInterrupted: console.isInterrupted)
    defer { pipeline.finish() }
    var progress = Progress(console, "importing", unit: .bytes, total: input.length)
    defer { progress.finish() }
    let before = bytes
    do {
      var batch = try pipeline.next(reusing: nil)
      while var current = batch {
        try commit(&current, of: input, into: store)
        if current.bytesRead > 0 { bytes = before + current.bytesRead }
        let rate = Int(Double(committed) / max(progress.seconds, 0.001))
        progress.update(current.bytesRead, note: HumanText.count(rate) + " lines/s")
        batch = try pipeline.next(reusing: current)
      }
    } catch let error as LineError {
      throw ToolError(.failed, describe(error, in: input))
    }
    isInterrupted = console.isInterrupted()
  }

  /// Warns of fields that were passed over.
  func warnOfUnknownFields() {
    guard !unknown.isEmpty else { return }
    let names = unknown.names.map { HumanText.escaped(Array($0.utf8)) }
    console.warn(
      "fields that an import does not know were passed over: "
        + names.joined(separator: ", "))
  }

  /// Says how many attachments have no content here.
  func warnOfAttachments() { attachments.warn() }

  private mutating func commit(
    _ batch: inout PreparedBatch, of input: InputStream, into store: Store?
  ) throws {
    unknown.formUnion(batch.lines.unknownFields)
    var bad = batch.bad
    if let store {
      let ineffective = try batch.ineffectiveTouches(in: store)
      if let first = ineffective.first {
        guard skipsBad else { throw first }
        try batch.layOut(excluding: Set(ineffective.map(\.line)))
        bad.append(contentsOf: ineffective)
      }
    }
    for error in bad {
      skipped += 1
      if skipped <= Self.toldLines {
        console.warn("\(input.name), \(error); the line is left out")
      }
    }
    guard !batch.operations.isEmpty else { return }
    if let store {
      // Staged content goes again unless an entry names it.
      let staged = try attachments.stage(batch.operations.attachments, in: store)
      defer { withExtendedLifetime(staged) {} }
      batch.operations.mayLackAttachments = true
      try store.commitBlocking(batch.operations, .buffered)
    }
    committed += batch.operations.count
    if store != nil { try tell() }
  }

  /// Says how much is committed; nothing that is said was not.
  private mutating func tell() throws(ToolError) {
    guard hasListener else { return }
    do throws(ToolError) {
      try console.output.line("{\"committed\":\(committed)}")
      try console.output.flush()
    } catch {
      // The import matters more than whoever listened.
      guard error == .outputClosed else { throw error }
      hasListener = false
    }
  }

  private func describe(_ error: LineError, in input: InputStream) -> String {
    "\(input.name), \(error); "
      + "\(HumanText.count(committed, "entry is", "entries are")) committed; "
      + "mend the line, or pass --skip-bad"
  }
}
