/// Keeps byte ranges that recovery cuts off the log's end, for whoever wants to look at them. Each
/// is a pair of files, `.bin` with the bytes and `.txt` that says where they came from.
struct Quarantine {
  private let fileSystem: any FileSystem
  private let directory: String

  init(_ fileSystem: any FileSystem, storePath: String) {
    self.fileSystem = fileSystem
    directory = storePath + "/" + StoreLayout.quarantineDirectory
  }

  /// Copies a range of a file, without zeros at its end. Nothing in it was acknowledged, so a disk
  /// too full for the copy does not keep the store from opening.
  func keep(_ file: any File, from start: Int, to end: Int, name: String) throws(FileSystemError) {
    var bytes = try file.read(min(end - start, Limits.quarantineBytes), at: start)
    while bytes.last == 0 { bytes.removeLast() }
    guard !bytes.isEmpty else { return }
    do {
      try makeRoom()
      let base = "\(name)-\(start)"
      let note = "torn tail of log/\(name), offset \(start), \(bytes.count) bytes\n"
      try write(bytes, to: base + ".bin")
      try write(Array(note.utf8), to: base + ".txt")
    } catch  where error.isDiskFull {
      return
    }
  }

  /// Removes everything.
  func removeAll() throws(TidemarkError) {
    do {
      guard try fileSystem.kind(directory) == .directory else { return }
      for name in try fileSystem.list(directory) { try fileSystem.remove(directory + "/" + name) }
      try fileSystem.syncDirectory(directory)
    } catch { throw TidemarkError(error, while: "clearing the quarantine") }
  }

  private func write(_ bytes: [UInt8], to name: String) throws(FileSystemError) {
    let path = directory + "/" + name
    if try fileSystem.kind(path) != nil { try fileSystem.remove(path) }
    let file = try fileSystem.open(path, .create)
    defer { file.close() }
    try file.writeFully(bytes.rawSpan, at: 0)
  }

  /// Removes the oldest ranges down to one less than are kept. Names begin with the segment's first
  /// sequence, and lists of directories are sorted, so the oldest come first.
  private func makeRoom() throws(FileSystemError) {
    if try fileSystem.kind(directory) == nil { try fileSystem.createDirectory(directory) }
    let ranges = try fileSystem.list(directory).filter { $0.hasSuffix(".bin") }
    guard ranges.count >= Limits.quarantineFiles else { return }
    for name in ranges.prefix(ranges.count - Limits.quarantineFiles + 1) {
      try fileSystem.remove(directory + "/" + name)
      let note = directory + "/" + name.dropLast(4) + ".txt"
      if try fileSystem.kind(note) != nil { try fileSystem.remove(note) }
    }
  }
}
