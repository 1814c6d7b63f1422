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
  /// One frame of the log: header, block table, heads, attributes, value blocks.
  case frame
  /// A store of one segment: recovery, verification, repair and reads.
  case segment
  /// The locator and footer of a sealed segment.
  case locator
  /// MANIFEST; what is decoded must be the same after another round.
  case manifest
  /// An index image: look-ups, walks, labels, and a merge over it.
  case image
  /// A dictionary, a frame compressed with it, and training on samples.
  case dictionary
  /// Lines of NDJSON; what is decoded must be the same after it was written and read again.
  case ndjson
  /// A whole store directory with patches: opened, read, verified, repaired, written, reopened.
  case store
  /// A frame of the replication protocol; what is decoded must be the same after another round.
  case wire
  /// A message of the replication protocol as JSON; likewise.
  case wirejson
  /// Values of HTTP headers, and addresses with redirects.
  case httpheaders

  /// Feeds an input to the decoder.
  /// - Parameter input: any bytes.
  /// - Throws: when an answer was wrong.
  public func run(_ input: [UInt8]) throws(FuzzFinding) {
    let input = FuzzInput(input)
    switch self {
    case .frame: try FrameFuzz.run(input)
    case .segment: try SegmentFuzz.run(input)
    case .locator: try LocatorFuzz.run(input)
    case .manifest: try ManifestFuzz.run(input)
    case .image: try ImageFuzz.run(input)
    case .dictionary: try DictionaryFuzz.run(input)
    case .ndjson: try NDJSONFuzz.run(input)
    case .store: try StoreFuzz.run(input)
    case .wire: try WireFuzz.run(input)
    case .wirejson: try WireFuzz.runJSON(input)
    case .httpheaders: try HTTPHeadersFuzz.run(input)
    }
  }

  /// Inputs to begin with, made anew by the engine that is tested; the same in every call.
  public func seeds() -> [[UInt8]] {
    switch self {
    case .frame: FrameFuzz.seeds()
    case .segment: SegmentFuzz.seeds()
    case .locator: LocatorFuzz.seeds()
    case .manifest: ManifestFuzz.seeds()
    case .image: ImageFuzz.seeds()
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
  /// The fault, in words.
  public let description: String

  init(_ description: String) { self.description = description }
}
