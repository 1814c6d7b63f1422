/// The decoders that a fuzzer can feed, one target each.
///
/// A target takes any bytes and returns. It throws ``FuzzFinding`` when a decoder answered
/// wrongly; a trap, a hang or memory without bound is for the fuzzer to notice. The first byte of
/// an input holds options, bit 0 among them: whether checksums, magic numbers and sync words are
/// made right before decoding, so that a fuzzer gets past them. Without that bit the bytes are
/// taken as they are.
///
/// ```swift
/// for target in FuzzTarget.allCases {
///   for seed in target.seeds() { try target.run(seed) }
/// }
/// ```
public enum FuzzTarget: String, CaseIterable, Sendable {
  /// Decodes one frame of the log: header, block table, heads, attributes and value blocks.
  case frame
  /// Opens a store of one segment: recovery, verification, repair and reads.
  case segment
  /// Decodes the locator and footer of a sealed segment.
  case locator
  /// Decodes the file MANIFEST. Encoding and decoding the result again must change nothing.
  case manifest
  /// Reads a sorted run of the index: lookups, walks, labels and a merge.
  case run
  /// Decodes a compression dictionary and a frame compressed with it, and trains a dictionary on
  /// samples.
  case dictionary
  /// Decodes lines of NDJSON. Writing and reading the result again must change nothing.
  case ndjson
  /// Opens a whole store directory with damaged bytes, then reads, verifies, repairs, writes and
  /// reopens it.
  case store
  /// Decodes a binary frame of the sync protocol. Encoding and decoding the result again must
  /// change nothing.
  case wire
  /// Decodes a JSON message of the sync protocol. Encoding and decoding the result again must
  /// change nothing.
  case wirejson
  /// Parses values of HTTP header fields, and addresses of redirects.
  case httpheaders

  /// Feeds an input to the target's decoder.
  /// - Parameter input: any bytes.
  /// - Throws: ``FuzzFinding`` when the decoder gave a wrong answer.
  public func run(_ input: [UInt8]) throws(FuzzFinding) {
    let input = FuzzInput(input)
    switch self {
    case .frame: try FrameFuzz.run(input)
    case .segment: try SegmentFuzz.run(input)
    case .locator: try LocatorFuzz.run(input)
    case .manifest: try ManifestFuzz.run(input)
    case .run: try RunFuzz.run(input)
    case .dictionary: try DictionaryFuzz.run(input)
    case .ndjson: try NDJSONFuzz.run(input)
    case .store: try StoreFuzz.run(input)
    case .wire: try WireFuzz.run(input)
    case .wirejson: try WireFuzz.runJSON(input)
    case .httpheaders: try HTTPHeadersFuzz.run(input)
    }
  }

  /// Returns valid inputs with which a fuzzer can begin. The engine makes them anew, and they are
  /// the same in every call.
  public func seeds() -> [[UInt8]] {
    switch self {
    case .frame: FrameFuzz.seeds()
    case .segment: SegmentFuzz.seeds()
    case .locator: LocatorFuzz.seeds()
    case .manifest: ManifestFuzz.seeds()
    case .run: RunFuzz.seeds()
    case .dictionary: DictionaryFuzz.seeds()
    case .ndjson: NDJSONFuzz.seeds()
    case .store: StoreFuzz.seeds()
    case .wire: WireFuzz.seeds()
    case .wirejson: WireFuzz.jsonSeeds()
    case .httpheaders: HTTPHeadersFuzz.seeds()
    }
  }
}

/// A wrong answer that a fuzz target met.
public struct FuzzFinding: Error, Sendable, Hashable, CustomStringConvertible {
  /// What the decoder did wrong, in words.
  public let description: String

  init(_ description: String) { self.description = description }
}
