// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .treatAllWarnings(as: .error),
]

// How fast the store is beside the engines that somebody would choose in its place, and how much
// writers pay for a replicator: `Tools/bench` installs the engines, builds this and runs it.
let package = Package(
  name: "benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [
    .package(name: "tidemark", path: "../.."),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ],
  targets: [
    .systemLibrary(name: "CLMDB", providers: [.apt(["liblmdb-dev"]), .brew(["lmdb"])]),
    .systemLibrary(name: "CLevelDB", providers: [.apt(["libleveldb-dev"]), .brew(["leveldb"])]),
    .systemLibrary(name: "CRocksDB", providers: [.apt(["librocksdb-dev"]), .brew(["rocksdb"])]),
    .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(name: "CTkrzw", providers: [.apt(["libtkrzw-dev"]), .brew(["tkrzw"])]),
    // The one that the package's tests count allocations with, by a link.
    .target(name: "CAllocationCount"),
    .executableTarget(
      name: "tidemark-bench",
      dependencies: [
        "CAllocationCount", "CLMDB", "CLevelDB", "CRocksDB", "CSQLite", "CTkrzw",
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkSync", package: "tidemark"),
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        .product(name: "TidemarkHTTP", package: "tidemark"),
        .product(name: "TidemarkTestKit", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .executableTarget(
      name: "path-bench", dependencies: [.product(name: "Tidemark", package: "tidemark")],
      swiftSettings: strict),
    .executableTarget(
      name: "replicator-bench",
      dependencies: [
        .product(name: "Tidemark", package: "tidemark"),
        .product(name: "TidemarkSync", package: "tidemark"),
        .product(name: "TidemarkSyncServer", package: "tidemark"),
        .product(name: "TidemarkHTTP", package: "tidemark"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .testTarget(name: "BenchTests", dependencies: ["tidemark-bench"], swiftSettings: strict),
  ],
  swiftLanguageModes: [.v6]
)
