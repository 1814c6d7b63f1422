/// A small file beside the log that only saves work, such as a cache's order of use: a store loses
/// nothing without it. There are two copies. A write replaces the older one, so that a crash leaves
/// the other whole; a read takes the valid one of the higher generation. There is no lock: a copy
/// that two writes at once have torn fails its checksum.
///
/// ```
///  0 u64 magic                        32 u64 number of the file, random
///  8 u16 major version, u16 minor     40 u64 length of what follows
/// 12 u32 flags: bit 0 = encrypted     48 u64 XXH64 of the file with this field 0
/// 16 u64 generation, one more with    56 with bit 0: the 76 bytes of a FileSeal (file's key)
///        every writing                   the content
/// 24 u64 zero
/// ```
package struct HintFile: Sendable {
  private static let magic: UInt64 = 0x0a54_4e48_4544_4954  // "TIDEHNT\n"
  private static let headerBytes = 56
  private static let nonce = BlockSealer.Nonce(kind: 5 << 24, place: 0)
  /// Longest content.
  package static let mostBytes = 64 << 20

  private let writer: LogWriter
  private let paths: [String]

  /// - Parameter name: the file's, one for each hint of the store: letters, digits and hyphens.
  package init(_ writer: LogWriter, name: String) {
    self.writer = writer
    let directory = writer.path + "/" + StoreLayout.hintDirectory + "/"
    paths = [directory + name + ".0", directory + name + ".1"]
  }

  private var fileSystem: any FileSystem { writer.fileSystem }

  /// The content that was written last; nil where there is none that can be read.
  package func read() -> [UInt8]? { newest()?.content }

  private typealias Copy = (number: Int, generation: UInt64, content: [UInt8])

  private func newest() -> Copy? {
    paths.indices.compactMap { try? readCopy($0) }.max { $0.generation < $1.generation }
  }

  private func readCopy(_ number: Int) throws -> Copy {
    let file = try fileSystem.open(paths[number], .read)
    defer { file.close() }
    let length = try file.length()
    // 4096 is more than the seal and the tag of an encrypted file take.
    guard length >= Self.headerBytes, length <= Self.mostBytes + Self.headerBytes + 4096 else {
      throw FormatError("a hint file of another length")
    }
    var bytes = try file.read(length, at: 0)
    guard bytes.count == length else { throw FormatError("a hint file that is not whole") }
    let checksum = try bytes.rawSpan.u64(at: 48)
    bytes.replaceSubrange(48..<56, with: repeatElement(0, count: 8))
    guard try bytes.rawSpan.u64(at: 0) == Self.magic,
      try bytes.rawSpan.u16(at: 8) == FormatConstants.major, XXH64.hash(bytes.rawSpan) == checksum,
      try bytes.rawSpan.u64(at: 40) == UInt64(length - Self.headerBytes)
    else { throw FormatError("a hint file that is not whole") }
    let generation = try bytes.rawSpan.u64(at: 16)
    guard try bytes.rawSpan.u32(at: 12) & FormatConstants.encryptionFeature != 0 else {
      // An encrypted store trusts no plain file: anybody may have made it.
      guard try writer.keys.current() == nil else { throw FormatError("not encrypted") }
      let content = Array(bytes[Self.headerBytes...])
      return (number, generation, content)
    }
    let fileID = try bytes.rawSpan.u64(at: 32)
    let seal = try FileSeal(bytes.rawSpan, at: Self.headerBytes)
    let sealer = try seal.sealer(key: writer.keys.key(seal.keyID), fileID: fileID)
    let start = Self.headerBytes + FileSeal.byteCount
    let content = try sealer.open(bytes.rawSpan.extracting(start..<length), Self.nonce)
    return (number, generation, content)
  }

  /// Writes the content over the older copy, without a sync; nothing if it is above `mostBytes`.
  /// - Throws: `closed` and `readOnly` too.
  package func write(_ content: [UInt8]) throws(TidemarkError) {
    guard content.count <= Self.mostBytes else { return }
    try writer.checkWritable()
    let newest = newest()
    let older = newest.map { 1 - $0.number } ?? 0
    let bytes = try encode(content, generation: (newest?.generation ?? 0) + 1)
    do {
      let directory = writer.path + "/" + StoreLayout.hintDirectory
      if try fileSystem.kind(directory) == nil { try fileSystem.createDirectory(directory) }
      let exists = try fileSystem.kind(paths[older]) != nil
      let file = try fileSystem.open(paths[older], exists ? .readWrite : .create)
      defer { file.close() }
      try file.truncate(to: bytes.count)
      try file.writeFully(bytes.rawSpan, at: 0)
    } catch { throw TidemarkError(error, while: "writing a hint file") }
  }

  /// Removes both copies, for content that must not stay on the disk.
  package func remove() throws(TidemarkError) {
    do {
      for path in paths where try fileSystem.kind(path) != nil { try fileSystem.remove(path) }
    } catch { throw TidemarkError(error, while: "removing a hint file") }
  }

  /// The names of all hints of a store.
  package static func names(_ writer: LogWriter) throws(TidemarkError) -> [String] {
    let directory = writer.path + "/" + StoreLayout.hintDirectory
    do {
      let files = try writer.fileSystem.names(in: directory)
        .filter { $0.hasSuffix(".0") || $0.hasSuffix(".1") }
      return Set(files.map { String($0.dropLast(2)) }).sorted()
    } catch { throw TidemarkError(error, while: "looking for hints") }
  }

  /// The hint files that are not encrypted with `key` (nil: not plain), each with the key that it
  /// is encrypted with; nil for a plain file.
  static func files(
    in store: StoreContext, withoutKey key: Encryption.KeyID?
  ) throws(TidemarkError) -> [(path: String, key: Encryption.KeyID?)] {
    let directory = store.path + "/" + StoreLayout.hintDirectory
    let fileSystem = store.environment.fileSystem
    do throws(FileSystemError) {
      var files: [(path: String, key: Encryption.KeyID?)] = []
      for name in try fileSystem.names(in: directory) {
        let path = directory + "/" + name
        let head = try fileSystem.head(of: path, headerBytes + Encryption.KeyID.byteCount)
        let flags = (try? head.rawSpan.u32(at: 12)) ?? 0
        let isEncrypted = flags & FormatConstants.encryptionFeature != 0
        let found = isEncrypted ? Encryption.KeyID(Array(head.dropFirst(headerBytes))) : nil
        if found != key { files.append((path, found)) }
      }
      return files
    } catch { throw TidemarkError(error, while: "looking at hints") }
  }

  private func encode(_ content: [UInt8], generation: UInt64) throws(TidemarkError) -> [UInt8] {
    let number = writer.environment.random.next()
    let fileKey = try writer.newFileKey(try writer.keys.current())
    var file = ByteWriter(capacity: Self.headerBytes + content.count + 128)
    file.u64(Self.magic)
    file.u16(FormatConstants.major)
    file.u16(FormatConstants.minor)
    file.u32(fileKey == nil ? 0 : FormatConstants.encryptionFeature)
    file.u64(generation)
    file.u64(0)
    file.u64(number)
    let more = fileKey == nil ? 0 : FileSeal.byteCount + BlockSealer.tagBytes
    file.u64(UInt64(content.count + more))
    file.u64(0)
    if let fileKey {
      do {
        let seal = try fileKey.seal(fileID: number, prefix: file.bytes)
        seal.encode(into: &file)
        file.raw(content)
        try fileKey.sealer(fileID: number).seal(
          &file.bytes, from: file.count - content.count, Self.nonce)
      } catch { throw TidemarkError(.inputOutput, error.reason, cause: error) }
    } else {
      file.raw(content)
    }
    file.patch(u64: XXH64.hash(file.bytes.rawSpan), at: 48)
    return file.bytes
  }
}
