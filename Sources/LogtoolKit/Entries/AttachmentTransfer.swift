internal import Tidemark
internal import TidemarkEngine

/// Writes the content of attachments into a directory, each once, under the names that they have
/// in a store.
struct AttachmentExport {
  private let console: Console
  private let store: Store
  private let directory: String?
  private var written: Set<[UInt8]> = []
  private var missing = 0

  /// - Parameter directory: made when it is not there; nil leaves the content out.
  init(_ console: Console, _ store: Store, _ directory: String?) throws {
    self.console = console
    self.store = store
    self.directory = directory
    guard let directory else { return }
    let files = console.storeEnvironment.fileSystem
    if try files.kind(directory) == nil { try files.createDirectory(directory) }
  }

  mutating func write(_ id: AttachmentID) throws {
    guard written.insert(id.hash).inserted else { return }
    guard let directory, let reader = try store.attachment(AttachmentReference(id)) else {
      missing += 1
      return
    }
    let files = console.storeEnvironment.fileSystem
    let path = directory + "/" + id.fileName
    let unfinished = path + ".part"
    if try files.kind(unfinished) != nil { try files.remove(unfinished) }
    let file = try files.open(unfinished, .create)
    defer { file.close() }
    var offset = 0
    try reader.forEachChunk {
      try file.writeFully($0.rawSpan, at: offset)
      offset += $0.count
    }
    try file.sync()
    try files.rename(unfinished, to: path)
  }

  func warn() {
    guard missing > 0 else { return }
    let count = HumanText.count(missing, "attachment is", "attachments are")
    console.warn(
      directory == nil
        ? "the content of \(count) left out; give --attachments DIRECTORY to have it"
        : "the content of \(count) not in the store, and was left out")
  }
}

/// Brings the content of attachments from a directory into a store.
struct AttachmentImport {
  private let console: Console
  private let directory: String?
  private var missing: Set<[UInt8]> = []

  init(_ console: Console, _ directory: String?) {
    self.console = console
    self.directory = directory
  }

  /// Writes what is not in the store yet.
  /// - Returns: keeps the content until the entries are committed that name it.
  /// - Throws: `damaged` where a file does not hold what its name says.
  mutating func stage(_ ids: [AttachmentID], in store: Store) throws -> [AttachmentHold] {
    var holds: [AttachmentHold] = []
    for id in ids {
      if try store.attachment(AttachmentReference(id)) != nil { continue }
      if let hold = try copy(id, to: store.engine) {
        holds.append(hold)
      } else {
        missing.insert(id.hash)
      }
    }
    return holds
  }

  private func copy(_ id: AttachmentID, to engine: Engine) throws -> AttachmentHold? {
    guard let directory else { return nil }
    let files = console.storeEnvironment.fileSystem
    let path = directory + "/" + id.fileName
    guard try files.kind(path) == .file else { return nil }
    let file = try files.open(path, .read)
    defer { file.close() }
    let writer = try engine.newAttachment()
    var offset = 0
    while true {
      let bytes = try file.read(1 << 20, at: offset)
      guard !bytes.isEmpty else { break }
      try writer.write(bytes.rawSpan)
      offset += bytes.count
    }
    return try writer.finish(expecting: id)
  }

  func warn() {
    guard !missing.isEmpty else { return }
    let count = HumanText.count(missing.count, "attachment", "attachments")
    console.warn(
      directory == nil
        ? "the content of \(count) is not in the store; import again with --attachments DIRECTORY"
        : "the content of \(count) is not in \(directory ?? "")")
  }
}
