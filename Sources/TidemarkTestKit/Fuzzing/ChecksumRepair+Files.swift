internal import TidemarkEngine

extension ChecksumRepair {
  /// Makes MANIFEST right: magic, version, and the checksum over everything.
  /// - Parameter fits: whether the length of the fields is that of the bytes without the zeros
  ///   at their end, where it is more than there is.
  static func manifest(_ bytes: inout [UInt8], fits: Bool) {
    guard bytes.count >= 40 else { return }
    bytes.set(FormatConstants.manifestMagic, at: 0)
    if fits, bytes.word64(24) > UInt64(bytes.count) {
      let zeros = bytes.reversed().prefix { $0 == 0 }.count
      bytes.set(UInt64(max(40, bytes.count - zeros)), at: 24)
    }
    bytes.set(UInt64(0), at: 32)
    bytes.set(XXH64.hash(bytes.rawSpan), at: 32)
  }

  /// Bytes of a sorted run's header page, of its chunks, and of the checksum behind each.
  static let runHeaderBytes = 4096
  static let runChunkBytes = 1 << 14
  static let runMagic: UInt64 = 0x3158_4449_4544_4954

  /// Makes a sorted run right: magic, checksums of the header page and of every chunk.
  static func run(_ bytes: inout [UInt8]) {
    let header = runHeaderBytes
    guard bytes.count >= header else { return }
    bytes.set(runMagic, at: 0)
    bytes.set(XXH64.hash(bytes.rawSpan.extracting(0..<(header - 8))), at: header - 8)
    let id = bytes.word64(56)
    var offset = header
    var chunk: UInt64 = 0
    while offset + 8 < bytes.count {
      let count = min(runChunkBytes, bytes.count - offset - 8)
      let seed = id &+ chunk &* 0x9e37_79b9_7f4a_7c15
      let sum = XXH64.hash(bytes.rawSpan.extracting(offset..<(offset + count)), seed: seed)
      bytes.set(sum, at: offset + count)
      offset += count + 8
      chunk += 1
    }
  }
}
