// What launchers set, and what of it does not fit together.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"
#include "tests/support/temp_dir.hpp"

extern char** environ;

namespace lamina::comm {
namespace {

using Variables = std::map<std::string, std::string>;

/// The environment is these variables alone.
Meeting meeting_with(const Variables& variables) {
  ::clearenv();
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  return meeting_from_environment();
}

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Variables kTorchrun = {{"RANK", "5"},
                             {"WORLD_SIZE", "8"},
                             {"LOCAL_RANK", "1"},
                             {"LOCAL_WORLD_SIZE", "4"},
                             {"MASTER_ADDR", "node-1"},
                             {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                            {"OMPI_COMM_WORLD_SIZE", "4"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                            {"PMIX_NAMESPACE", "438960129"}};
const Variables kMpich = {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
const Variables kSlurm = {{"SLURM_PROCID", "2"},         {"SLURM_NTASKS", "4"},
                          {"SLURM_LOCALID", "0"},        {"SLURM_STEP_NODELIST", "127.0.0.[1-4]"},
                          {"SLURM_STEP_NUM_NODES", "4"}, {"SLURM_JOB_ID", "71"},
                          {"SLURM_STEP_ID", "0"}};

void expect(const Meeting& meeting, int rank, int size, int local_rank, int local_size, const std::string& place) {
  EXPECT_EQ(meeting.rank, rank);
  EXPECT_EQ(meeting.size, size);
  EXPECT_EQ(meeting.local_rank, local_rank);
  EXPECT_EQ(meeting.local_size, local_size);
  EXPECT_EQ(meeting.place.substr(0, place.size()), place);
}

TEST(Environment, NoLauncher) {
  const Meeting meeting = meeting_with({{"PATH", "/bin"}});
  expect(meeting, 0, 1, -1, -1, "");
  EXPECT_EQ(meeting.job, "lamina");
  EXPECT_EQ(meeting.timeout, std::chrono::minutes(5));
  EXPECT_NO_THROW(rendezvous(meeting)->exchange(""));
  expect(meeting_with({{"RANK", ""}, {"WORLD_SIZE", ""}}), 0, 1, -1, -1, "");
}

TEST(Environment, Lamina) {
  const Meeting meeting = meeting_with(with(kTorchrun, {{"LAMINA_RANK", "1"},
                                                        {"LAMINA_SIZE", "2"},
                                                        {"LAMINA_LOCAL_RANK", "1"},
                                                        {"LAMINA_LOCAL_SIZE", "2"},
                                                        {"LAMINA_MEETING", "tcp://127.0.0.1:4000"},
                                                        {"LAMINA_JOB", "j"},
                                                        {"LAMINA_TIMEOUT", "2.5"}}));
  expect(meeting, 1, 2, 1, 2, "tcp://127.0.0.1:4000");
  EXPECT_EQ(meeting.job, "j");
  EXPECT_EQ(meeting.timeout, std::chrono::milliseconds(2500));
}

TEST(Environment, Torchrun) {
  expect(meeting_with(kTorchrun), 5, 8, 1, 4, "tcp://node-1:29500");
  expect(meeting_with(with(kTorchrun, {{"MASTER_ADDR", "fe80::1"}})), 5, 8, 1, 4, "tcp://[fe80::1]:29500");
  expect(meeting_with(with(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}})), 5, 8, 1, 4, "tcp://node-1:29501");
  expect(meeting_with(with(kTorchrun, {{"LAMINA_MEETING", "file:///x"}})), 5, 8, 1, 4, "file:///x");
  EXPECT_NE(meeting_with(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "a"}})).job, meeting_with(kTorchrun).job);
  // Inside of an mpirun inside of a Slurm job it is still torchrun's.
  expect(meeting_with(with(with(kTorchrun, kOpenMpi), kSlurm)), 5, 8, 1, 4, "tcp://node-1:29500");
}

TEST(Environment, Mpi) {
  expect(meeting_with(kOpenMpi), 3, 4, 3, 4, "tcp://127.0.0.1:");
  EXPECT_NE(meeting_with(kOpenMpi).place, meeting_with(with(kOpenMpi, {{"PMIX_NAMESPACE", "438960130"}})).place);
  expect(meeting_with(kMpich), 1, 2, 1, 2, "tcp://127.0.0.1:");
  const Variables hosts = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
  LAMINA_EXPECT_ERROR(meeting_with(hosts), ValueError, "LAMINA_MEETING");
  expect(meeting_with(with(hosts, {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}})), 3, 4, 1, 2, "tcp://a:1");
}

TEST(Environment, Slurm) {
  expect(meeting_with(kSlurm), 2, 4, 0, -1, "tcp://127.0.0.1:");
  EXPECT_EQ(meeting_with(kSlurm).job, "lamina-71-0");
  EXPECT_NE(meeting_with(kSlurm).place, meeting_with(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).place);
  const auto place = [](const char* list) { return meeting_with(with(kSlurm, {{"SLURM_STEP_NODELIST", list}})).place; };
  EXPECT_EQ(place("127.[001-003].0.[7,9-12],x[1-2]").substr(0, 16), "tcp://127.001.0.");
  EXPECT_EQ(place("n.invalid,b,c").substr(0, 16), "tcp://n.invalid:");
  EXPECT_EQ(place("n[3,5-7].invalid").substr(0, 17), "tcp://n3.invalid:");
  EXPECT_EQ(place("n[3-7].invalid").substr(0, 17), "tcp://n3.invalid:");
  EXPECT_EQ(place("n[3").substr(0, 8), "tcp://n3");
  const Variables unknown = {{"SLURM_STEP_NODELIST", "n0.invalid"}, {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.9"}};
  expect(meeting_with(with(kSlurm, unknown)), 2, 4, 0, -1, "tcp://10.0.0.9:");
  expect(meeting_with(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_STEP_NODELIST", "n0"}})), 2, 4, 0, -1,
         "tcp://127.0.0.1:");
  // A batch script is no step.
  Variables batch = kSlurm;
  batch.erase("SLURM_STEP_NODELIST");
  expect(meeting_with(batch), 0, 1, -1, -1, "");
}

TEST(Environment, WhatDoesNotFit) {
  const auto expect_error = [](const Variables& base, const Variables& more, std::string_view part,
                               std::string_view other) {
    LAMINA_EXPECT_ERROR(meeting_with(with(base, more)), ValueError, part);
    LAMINA_EXPECT_ERROR(meeting_with(with(base, more)), ValueError, other);
  };
  for (const char* value : {"x", "-1", "1.5", " 1", "1 ", "0x1", "99999999999"}) {
    expect_error(kTorchrun, {{"RANK", value}}, "RANK", value);
    expect_error(kSlurm, {{"SLURM_NTASKS", value}}, "SLURM_NTASKS", value);
    expect_error(kTorchrun, {{"MASTER_PORT", value}}, "MASTER_PORT", value);
  }
  expect_error(kTorchrun, {{"RANK", "8"}}, "RANK=8", "WORLD_SIZE=8");
  expect_error(kTorchrun, {{"LOCAL_RANK", "4"}}, "LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4");
  expect_error(kTorchrun, {{"LOCAL_WORLD_SIZE", "9"}}, "LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8");
  expect_error(kTorchrun, {{"RANK", ""}}, "RANK is not", "WORLD_SIZE is set");
  expect_error(kTorchrun, {{"WORLD_SIZE", ""}}, "RANK is set", "WORLD_SIZE is not");
  expect_error(kTorchrun, {{"MASTER_PORT", ""}}, "MASTER_ADDR is set", "MASTER_PORT is not");
  expect_error(kTorchrun, {{"MASTER_ADDR", ""}}, "MASTER_PORT is set", "MASTER_ADDR is not");
  expect_error(kTorchrun, {{"MASTER_PORT", "0"}}, "MASTER_PORT", "1 to 65535");
  expect_error(kTorchrun, {{"MASTER_PORT", "65536"}}, "MASTER_PORT", "1 to 65535");
  expect_error({{"LAMINA_RANK", "0"}}, {}, "LAMINA_RANK", "LAMINA_SIZE");
  for (const char* value : {"x", "0", "-1", "nan", "inf", "1s"}) {
    expect_error({}, {{"LAMINA_TIMEOUT", value}}, "LAMINA_TIMEOUT", value);
  }
}

}  // namespace
}  // namespace lamina::comm
