/// Keys of the index that engines without one of their own get: `~`, label, `/`, key.
struct LabelKeys {
  private let labels: Labels
  private let bytes: UnsafeMutableRawPointer
  private let labelBytes: Int

  init(_ labels: Labels) {
    self.labels = labels
    labelBytes = labels.texts.map(\.count).max() ?? 0
    bytes = .allocate(byteCount: labelBytes + KeyText.byteCount + 16, alignment: 8)
    bytes.storeBytes(of: UInt8(ascii: "~"), as: UInt8.self)
    (bytes + 1 + labelBytes).storeBytes(of: UInt8(ascii: "/"), as: UInt8.self)
  }

  func release() { bytes.deallocate() }

  /// How many bytes come before the record's key; labels are all of one length.
  var prefixBytes: Int { labelBytes + 2 }

  /// Writes a label, and lends the bytes that all its keys begin with.
  func prefix(_ label: Int) -> UnsafeRawBufferPointer {
    labels.texts[label].withUnsafeBytes { text in
      if let start = text.baseAddress {
        (bytes + 1).copyMemory(from: start, byteCount: text.count)
      }
    }
    return UnsafeRawBufferPointer(start: bytes, count: prefixBytes)
  }

  /// The key that stands for a record's label.
  func key(_ index: UInt32, _ key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    _ = prefix(labels.number(index))
    if let start = key.baseAddress {
      (bytes + prefixBytes).copyMemory(from: start, byteCount: key.count)
    }
    return UnsafeRawBufferPointer(start: bytes, count: prefixBytes + key.count)
  }
}

extension UnsafeRawBufferPointer {
  /// As C interfaces take text.
  var characters: UnsafePointer<CChar>? {
    baseAddress?.assumingMemoryBound(to: CChar.self)
  }

  /// Whether this begins with those bytes.
  func begins(with prefix: UnsafeRawBufferPointer) -> Bool {
    count >= prefix.count && elementsEqualStart(prefix)
  }

  private func elementsEqualStart(_ prefix: UnsafeRawBufferPointer) -> Bool {
    for place in prefix.indices where self[place] != prefix[place] { return false }
    return true
  }
}
