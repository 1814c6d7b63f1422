import Foundation
import Testing
import TidemarkTestKit

/// The short form of the fuzz targets; the long one is `Tools/fuzz`.
@Suite("Fuzz targets")
struct FuzzTargetTests {
  /// How many mutations of seeds each target gets; those that make whole stores get fewer.
  private static let rounds: [FuzzTarget: Int] = [.segment: 16, .store: 16, .run: 60]

  private static let corpus = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../Tools/Fuzzing/Corpus").standardizedFileURL

  private static func files(_ target: FuzzTarget) throws -> [URL] {
    let folder = corpus.appending(path: target.rawValue)
    return try FileManager.default
      .contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .sorted { $0.path < $1.path }
  }

  @Test("an input that the fuzzer found is decoded or refused", arguments: FuzzTarget.allCases)
  func corpus(_ target: FuzzTarget) throws {
    let files = try Self.files(target)
    #expect(!files.isEmpty, "no corpus for \(target)")
    for file in files {
      let input = [UInt8](try Data(contentsOf: file))
      #expect(throws: Never.self, "\(file.path)") { try target.run(input) }
    }
  }

  @Test("seeds and their mutations are decoded or refused", arguments: FuzzTarget.allCases)
  func mutations(_ target: FuzzTarget) throws {
    let seeds = target.seeds()
    try #require(!seeds.isEmpty)
    // A store is opened several times for each input, so only some of its many seeds are run.
    for (number, input) in seeds.enumerated() where number < 8 || number % 7 == 0 {
      #expect(throws: Never.self, "seed input \(number) of \(target)") { try target.run(input) }
    }
    let seed = UInt64.random(in: 0...UInt64.max)
    // Should a mutation trap there is no expectation to print it.
    print("fuzz target \(target): seed \(seed)")
    var mutator = FuzzMutator(seed: seed)
    for round in 0..<(Self.rounds[target] ?? 1500) {
      let input = mutator.mutate(seeds[round % seeds.count], with: seeds)
      #expect(throws: Never.self, "seed \(seed), round \(round)") { try target.run(input) }
    }
  }

  @Test("a mutator with the same seed makes the same inputs")
  func repeats() {
    let seeds = FuzzTarget.manifest.seeds()
    var a = FuzzMutator(seed: 7)
    var b = FuzzMutator(seed: 7)
    for _ in 0..<50 {
      #expect(a.mutate(seeds[0], with: seeds) == b.mutate(seeds[0], with: seeds))
    }
  }
}
