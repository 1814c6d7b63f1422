#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif
public import Tidemark

extension CacheCoding where Value: Codable {
  /// Values as JSON, with sorted names, so that equal values are equal bytes.
  public static var json: CacheCoding {
    CacheCoding(
      encode: { value in
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return [UInt8](try encoder.encode(value))
      },
      decode: { bytes in try JSONDecoder().decode(Value.self, from: Data(bytes)) })
  }
}

extension Store {
  /// The cache of the keys that begin with a prefix, of values that are kept as JSON.
  ///
  /// ```swift
  /// let articles = try store.cache(of: Article.self, prefix: "articles/")
  /// try await articles.put("42", article, hash: etag)
  /// ```
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - prefix: see ``Tidemark/Store/cache(prefix:policy:)``.
  ///   - policy: its rules.
  /// - Throws: `invalidArgument`; what reading the index throws.
  public func cache<Value: Codable & Sendable>(
    of type: Value.Type, prefix: some BytesConvertible, policy: CachePolicy = CachePolicy()
  ) throws(TidemarkError) -> Cache<Value> {
    try cache(prefix: prefix, policy: policy, coding: .json)
  }

  /// The same for one version of the type; the entries of older versions go.
  /// - Parameters:
  ///   - type: the type of the values.
  ///   - prefix: see ``Tidemark/Store/cache(prefix:version:policy:)``.
  ///   - version: the version of the type.
  ///   - policy: its rules.
  /// - Throws: `invalidArgument`; what writing to the store throws.
  public func cache<Value: Codable & Sendable>(
    of type: Value.Type, prefix: some BytesConvertible, version: UInt32,
    policy: CachePolicy = CachePolicy()
  ) async throws(TidemarkError) -> Cache<Value> {
    try await cache(prefix: prefix, version: version, policy: policy, coding: .json)
  }
}
