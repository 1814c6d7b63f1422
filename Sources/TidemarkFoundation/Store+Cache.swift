#if canImport(Darwin)
  internal import Foundation
#else
  internal import FoundationEssentials
#endif
public import Tidemark

extension CacheCoding where Value: Codable {
  /// Stores values as JSON, with sorted names, so that equal values have equal bytes.
  public static var json: CacheCoding {
    CacheCoding(
      encode: { value in
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return [UInt8](try encoder.encode(value))
      },
      decode: { bytes in
        try JSONDepth.check(bytes)
        return try JSONDecoder().decode(Value.self, from: Data(bytes))
      })
  }
}

/// Bounds how deep values nest: `JSONDecoder` ends the process at arrays 513 levels deep, and what
/// a cache holds has come from a server.
private enum JSONDepth {
  private static let deepest = 256

  struct TooDeep: Error {}

  static func check(_ bytes: [UInt8]) throws {
    var (depth, isText, isEscaped) = (0, false, false)
    for byte in bytes {
      if isText {
        if byte == UInt8(ascii: "\""), !isEscaped { isText = false }
        isEscaped = byte == UInt8(ascii: "\\") && !isEscaped
        continue
      }
      switch byte {
      case UInt8(ascii: "\""): isText = true
      case UInt8(ascii: "["), UInt8(ascii: "{"):
        depth += 1
        guard depth <= deepest else { throw TooDeep() }
      case UInt8(ascii: "]"), UInt8(ascii: "}"): depth -= 1
      default: break
      }
    }
  }
}

extension Store {
  /// Returns the cache of the keys that begin with a prefix. Its values are `Codable` and stored as
  /// JSON.
  ///
  /// ```swift
  /// let articles = try store.cache(of: Article.self, prefix: "articles/")
  /// try await articles.put("42", article, hash: etag)
  /// ```
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - prefix: see ``TidemarkStore/Store/cache(prefix:policy:)``.
  ///   - policy: its rules.
  /// - Throws: `invalidArgument`; what reading the index throws.
  public func cache<Value: Codable & Sendable>(
    of type: Value.Type, prefix: some BytesConvertible, policy: CachePolicy = CachePolicy()
  ) throws(TidemarkError) -> Cache<Value> {
    try cache(prefix: prefix, policy: policy, coding: .json)
  }

  /// Returns the cache of a prefix for one version of its `Codable` values, and removes the entries
  /// of older versions.
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - prefix: see ``TidemarkStore/Store/cache(prefix:version:policy:)``.
  ///   - version: the version of the type; increase it when stored values no longer decode.
  ///   - policy: the rules of the cache.
  /// - Throws: `invalidArgument`, and the errors of writing to the store.
  public func cache<Value: Codable & Sendable>(
    of type: Value.Type, prefix: some BytesConvertible, version: UInt32,
    policy: CachePolicy = CachePolicy()
  ) async throws(TidemarkError) -> Cache<Value> {
    try await cache(prefix: prefix, version: version, policy: policy, coding: .json)
  }
}
