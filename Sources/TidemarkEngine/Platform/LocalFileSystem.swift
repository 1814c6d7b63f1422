/// The operating system's files.
///
/// Files are created for their owner only (mode 0600, directories 0700). `sync()` empties the
/// drive's own cache, too, as far as the system offers that.
package struct LocalFileSystem: FileSystem {
  package init() {}

  package func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    try perform(.open, path) { (path) throws(SystemError) in
      LocalFile(path: path, descriptor: try SystemFiles.open(path, mode))
    }
  }

  package func createDirectory(_ path: String) throws(FileSystemError) {
    try perform(.createDirectory, path, SystemFiles.createDirectory)
  }

  package func syncDirectory(_ path: String) throws(FileSystemError) {
    try perform(.syncDirectory, path, SystemFiles.syncDirectory)
  }

  package func list(_ path: String) throws(FileSystemError) -> [String] {
    try perform(.list, path) { (path) throws(SystemError) in
      try SystemFiles.list(path).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }
  }

  package func remove(_ path: String) throws(FileSystemError) {
    try perform(.remove, path, SystemFiles.remove)
  }

  package func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    try perform(.rename, path) { (path) throws(SystemError) in
      try SystemFiles.rename(path, to: newPath)
    }
  }

  package func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try perform(.inspect, path) { (path) throws(SystemError) in
      try SystemFiles.status(at: path)?.kind
    }
  }

  package func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    try perform(.lock, path) { (path) throws(SystemError) in
      try LocalFileLock.acquire(path, owner: owner)
    }
  }

  package func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try perform(.bootIdentifier, "") { (_) throws(SystemError) in
      let text = try SystemFiles.bootIdentifierText()
      guard let bytes = parseUUID(text) else { throw SystemError(number: ErrorNumber.inputOutput) }
      return bytes
    }
  }

  package func freeBytes(_ path: String) -> Int? { try? SystemFiles.freeBytes(path) }

  private func perform<R>(
    _ operation: FileSystemError.Operation, _ path: String,
    _ body: (String) throws(SystemError) -> R
  ) throws(FileSystemError) -> R {
    do throws(SystemError) {
      try SystemFiles.check(path)
      return try body(path)
    } catch { throw FileSystemError(operation, path: path, number: error.number) }
  }
}

/// The sixteen bytes of a UUID as text, with the line feed of Linux or the zero bytes of Darwin
/// behind it; nil when the text is no UUID.
func parseUUID(_ text: [UInt8]) -> [UInt8]? {
  let upperCase = UInt8(ascii: "A")...UInt8(ascii: "F")
  let digits = text.filter { ![UInt8(ascii: "-"), UInt8(ascii: "\n"), 0].contains($0) }
    .map { upperCase.contains($0) ? $0 + 0x20 : $0 }
  return digits.count == 32 ? [UInt8](hexDigits: digits) : nil
}
