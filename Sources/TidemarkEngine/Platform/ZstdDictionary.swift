#if BundledZstd
  internal import libzstd
  internal import libzstd.dictbuilder
#else
  internal import CZstd
#endif

// SAFETY: the C objects are created once, only read afterwards, which zstd allows from many
// threads, and freed when the last reference goes. Sizes passed to C are those of the buffers.

/// A compression dictionary, prepared for reading and, at one level, for writing. Immutable.
@safe
package final class ZstdDictionary: @unchecked Sendable {
  /// The dictionary as it is stored.
  package let bytes: [UInt8]
  /// The level that it is prepared for; nil when it is meant for reading only.
  package let level: Int32?
  let forDecompression: OpaquePointer
  let forCompression: OpaquePointer?

  /// - Parameters:
  ///   - bytes: a trained dictionary, or any bytes that data has in common.
  ///   - level: the level to prepare compression at; nil for reading only.
  /// - Throws: when it is empty, longer than ``Limits/dictionaryBytes`` or inconsistent.
  package init(_ bytes: [UInt8], level: Int32? = nil) throws(FormatError) {
    guard !bytes.isEmpty, bytes.count <= Limits.dictionaryBytes else {
      throw FormatError("a dictionary of \(bytes.count) bytes is out of bounds")
    }
    guard
      let forDecompression = unsafe bytes.withUnsafeBytes({
        unsafe ZSTD_createDDict($0.baseAddress, $0.count)
      })
    else { throw FormatError("the dictionary is damaged") }
    var forCompression: OpaquePointer?
    if let level {
      unsafe forCompression = bytes.withUnsafeBytes {
        unsafe ZSTD_createCDict($0.baseAddress, $0.count, level)
      }
      if unsafe forCompression == nil {
        unsafe ZSTD_freeDDict(forDecompression)
        throw FormatError("the dictionary is damaged")
      }
    }
    self.bytes = bytes
    self.level = level
    unsafe self.forDecompression = forDecompression
    unsafe self.forCompression = forCompression
  }

  deinit {
    unsafe ZSTD_freeDDict(forDecompression)
    unsafe ZSTD_freeCDict(forCompression)
  }

  /// - Parameters:
  ///   - samples: the samples, one after the other; ideally a hundred times `capacity`.
  ///   - sampleSizes: the length of each sample, in bytes; at least
  ///     ``Limits/dictionarySampleFromBytes``.
  ///   - capacity: the greatest length of the dictionary, in bytes; from 256 on.
  /// - Returns: nil when the samples are too few or too much alike to be worth one.
  package static func trainDictionary(
    samples: [UInt8], sampleSizes: [Int], capacity: Int
  ) -> [UInt8]? {
    var total = 0
    for size in sampleSizes {
      // The library divides by the number of 8-byte strings in three quarters of the samples, and
      // does not check that it is not 0.
      guard size >= Limits.dictionarySampleFromBytes, size <= samples.count - total else {
        return nil
      }
      total += size
    }
    guard capacity >= 256, capacity <= Limits.dictionaryBytes,
      let count = UInt32(exactly: sampleSizes.count), count > 0
    else { return nil }
    var trained = [UInt8]()
    unsafe trained.append(atMost: capacity) { target in
      let result = unsafe ZDICT_trainFromBuffer(
        target.baseAddress, target.count, samples, sampleSizes, count)
      return ZDICT_isError(result) == 0 ? result : 0
    }
    return trained.isEmpty ? nil : trained
  }
}
